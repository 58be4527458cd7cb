"""The network: connections that keep order until they break, and requests that may get lost.

A connection is what a WebSocket over TCP is: frames arrive in order and once, or not at all. Under
a partition they stay under way and arrive when it is over, unless one end has closed meanwhile;
what was under way when a connection breaks is lost, and each end hears of the break in its own
time. Doubling and reordering happen above it: when links resume, and when clients ask again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from hostler.sim.world import World

_MILLION: Final = 1_000_000


class NetworkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How well the network behaves while faults are on."""

    delay_ms: tuple[int, int] = (1, 40)
    is_request_lost_ppm: int = 0
    """Chance in a million that one way of a request gets lost."""


CALM: Final = NetworkPlan(delay_ms=(1, 10))


class Peer(Protocol):
    """One end of a connection."""

    def frame_came(self, connection: Connection, text: str) -> None:
        """Take a frame."""
        ...

    def connection_closed(self, connection: Connection) -> None:
        """Learn that no more frames will come."""
        ...


class _Way:
    """One direction of a connection."""

    def __init__(self, receiver: Peer) -> None:
        self.receiver = receiver
        self.under_way: deque[str | None] = deque()
        """`None` is the end of the connection."""
        self.last_at_ms = 0
        self.held_count = 0


class Connection:
    """A connection that an agent has made to the server."""

    def __init__(self, network: Network, host: str, agent: Peer, server: Peer) -> None:
        self.host = host
        self._network = network
        self._up = _Way(server)
        self._down = _Way(agent)
        self.is_agent_open = True
        self.is_server_open = True

    def send_to_server(self, text: str) -> None:
        """Write a frame as the agent."""
        if self.is_agent_open:
            self._send(self._up, text)

    def send_to_agent(self, text: str) -> None:
        """Write a frame as the server."""
        if self.is_server_open:
            self._send(self._down, text)

    def close_by_agent(self) -> None:
        """Close as the agent; the server learns of it after what was sent before."""
        if self.is_agent_open:
            self.is_agent_open = False
            self._send(self._up, None)

    def close_by_server(self) -> None:
        """Close as the server, or because its process has ended."""
        if self.is_server_open:
            self.is_server_open = False
            self._send(self._down, None)

    def break_off(self) -> None:
        """Lose everything under way; both ends notice soon."""
        for way in (self._up, self._down):
            way.under_way.clear()
            way.held_count = 0
            self._send(way, None)

    def is_closed_for(self, peer: Peer) -> bool:
        """Say whether this end has closed."""
        return not (self.is_server_open if peer is self._up.receiver else self.is_agent_open)

    def _send(self, way: _Way, text: str | None) -> None:
        world = self._network.world
        way.under_way.append(text)
        at_ms = max(way.last_at_ms, world.now_ms + self._network.delay_ms())
        way.last_at_ms = at_ms
        world.after(at_ms - world.now_ms, self._arrive, way)

    def _arrive(self, way: _Way) -> None:
        if self._network.is_cut(self.host, is_upward=way is self._up):
            way.held_count += 1
            self._network.hold(self)
            return
        self._deliver(way)

    def _deliver(self, way: _Way) -> None:
        if not way.under_way:
            return  # it broke meanwhile
        text = way.under_way.popleft()
        if text is not None:
            if not self.is_closed_for(way.receiver):
                way.receiver.frame_came(self, text)
            return
        if not self.is_closed_for(way.receiver):
            if way is self._up:
                self.is_server_open = False
            else:
                self.is_agent_open = False
            way.receiver.connection_closed(self)

    def release(self) -> None:
        """Let what a partition has held arrive."""
        for way in (self._up, self._down):
            if self._network.is_cut(self.host, is_upward=way is self._up):
                continue
            count, way.held_count = way.held_count, 0
            for _ in range(count):
                self._deliver(way)


class Network:
    """Everything between the server and the rest.

    Attributes:
        plan: How it behaves at present.
    """

    def __init__(self, world: World, plan: NetworkPlan) -> None:
        self.world = world
        self.plan = plan
        self._rng = world.stream("network")
        self._cut_up: dict[str, int] = {}
        self._cut_down: dict[str, int] = {}
        self._held: dict[str, list[Connection]] = {}

    def delay_ms(self) -> int:
        """Draw how long one message takes."""
        return self._rng.between(*self.plan.delay_ms)

    def is_cut(self, host: str, *, is_upward: bool) -> bool:
        """Say whether a partition lies between the host and the server, in this direction."""
        return host in (self._cut_up if is_upward else self._cut_down)

    def is_cut_at_all(self, host: str) -> bool:
        """Say whether a connection between the host and the server cannot come about."""
        return host in self._cut_up or host in self._cut_down

    def cut(self, host: str, *, is_upward: bool, is_downward: bool) -> None:
        """Put a partition between a host and the server; partitions may lie over each other."""
        for table, is_wanted in ((self._cut_up, is_upward), (self._cut_down, is_downward)):
            if is_wanted:
                table[host] = table.get(host, 0) + 1

    def heal(self, host: str, *, is_upward: bool, is_downward: bool) -> None:
        """Take one partition away, and let what it held arrive."""
        for table, is_wanted in ((self._cut_up, is_upward), (self._cut_down, is_downward)):
            if is_wanted and host in table:
                table[host] -= 1
                if table[host] == 0:
                    del table[host]
        held = self._held.pop(host, [])
        for connection in held:
            connection.release()
        if self.is_cut_at_all(host):
            self._held.setdefault(host, []).extend(held)

    def heal_all(self) -> None:
        """Take every partition away."""
        self._cut_up.clear()
        self._cut_down.clear()
        for host in list(self._held):
            for connection in self._held.pop(host):
                connection.release()

    def hold(self, connection: Connection) -> None:
        """Remember that a connection has frames waiting behind a partition."""
        held = self._held.setdefault(connection.host, [])
        if connection not in held:
            held.append(connection)

    def carry(self, call: Callable[[], None]) -> None:
        """Carry one way of a request: it arrives once, late, or never."""
        if self._rng.chance(self.plan.is_request_lost_ppm):
            self.world.probe("network.request_lost")
            return
        self.world.after(self.delay_ms(), call)
