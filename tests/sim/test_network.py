"""The made-up network behaves as a WebSocket over TCP does."""

from __future__ import annotations

from hostler.sim.network import Connection, Network, NetworkPlan
from hostler.sim.world import World


class Peer:
    """Writes down what it gets."""

    def __init__(self) -> None:
        self.frames: list[str] = []
        self.close_count = 0

    def frame_came(self, connection: Connection, text: str) -> None:
        self.frames.append(text)

    def connection_closed(self, connection: Connection) -> None:
        self.close_count += 1


class Line:
    """A connection between two peers in a world of its own."""

    def __init__(self) -> None:
        self.world = World(1)
        self.network = Network(self.world, NetworkPlan(delay_ms=(1, 50)))
        self.agent, self.server = Peer(), Peer()
        self.connection = Connection(self.network, "h", self.agent, self.server)

    def wait(self, duration_ms: int = 1_000) -> None:
        self.world.run(self.world.now_ms + duration_ms, event_count_max=10_000)


def test_frames_arrive_in_their_order_whatever_each_takes() -> None:
    line = Line()
    sent = [str(number) for number in range(50)]
    for text in sent:
        line.connection.send_to_server(text)
    line.wait()
    assert line.server.frames == sent


def test_a_partition_holds_frames_and_lets_them_go_in_order() -> None:
    line = Line()
    line.network.cut("h", is_upward=True, is_downward=False)
    line.connection.send_to_server("a")
    line.connection.send_to_agent("down")
    line.wait()
    line.connection.send_to_server("b")
    line.wait()
    assert (line.server.frames, line.agent.frames) == ([], ["down"])
    line.network.heal("h", is_upward=True, is_downward=False)
    line.wait()
    assert line.server.frames == ["a", "b"]


def test_partitions_may_lie_over_each_other() -> None:
    line = Line()
    for _ in range(2):
        line.network.cut("h", is_upward=True, is_downward=True)
    line.connection.send_to_server("a")
    line.wait()
    line.network.heal("h", is_upward=True, is_downward=True)
    line.wait()
    assert line.server.frames == []
    line.network.heal("h", is_upward=True, is_downward=True)
    line.wait()
    assert line.server.frames == ["a"]


def test_a_break_loses_what_is_under_way_and_both_ends_hear_of_it() -> None:
    line = Line()
    line.connection.send_to_server("lost")
    line.connection.break_off()
    line.wait()
    assert line.server.frames == []
    assert (line.agent.close_count, line.server.close_count) == (1, 1)


def test_what_was_sent_before_a_close_still_arrives() -> None:
    line = Line()
    line.connection.send_to_server("last words")
    line.connection.close_by_agent()
    line.wait()
    assert line.server.frames == ["last words"]
    assert (line.agent.close_count, line.server.close_count) == (0, 1)
