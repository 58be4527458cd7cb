"""The server's end of the link, against an agent that the test plays frame by frame."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from hostler.api import limits
from hostler.base.errors import Rejected
from hostler.base.ids import NodeId
from hostler.client import Client, RunFailed
from hostler.model.node import Health, NodePhase
from hostler.ports.agents import AgentSessionLost, AgentUnreachable
from hostler.wire.agent import (
    AgentMessage,
    CancelStream,
    CommandAnswered,
    EndLease,
    ExecEnded,
    ExecInput,
    ExecOutput,
    ExecSignal,
    ExecStart,
    Heartbeat,
    HeartbeatAck,
    Hello,
    LogChunk,
    LogEnded,
    ReadLogs,
    Refused,
    ServerMessage,
    StartAllocation,
    StreamCredit,
    Welcome,
)
from hostler.wire.link import LinkSession, decode_opening_from_server, opening_frame
from hostler.wire.version import LINK_PROTOCOL
from hostler.wire.work import Inventory
from tests.api.lab import CONFIG, SLEEPER, Lab
from tests.eventually import eventually_async


class PlayedAgent:
    """One agent, and at most one connection at a time."""

    def __init__(self, lab: Lab, node_id: str, credential: str) -> None:
        self.lab = lab
        self.node_id = node_id
        self.credential = credential
        self.session: LinkSession | None = None
        self._socket: ClientConnection | None = None

    @classmethod
    async def joined(cls, lab: Lab, machine_id: str = "m-1") -> Self:
        async with lab.http() as http:
            answer = await http.post(
                "/v1/agent/join",
                json={
                    "hostname": "played",
                    "pool": "studio",
                    "tier": "fixed",
                    "machine_id": machine_id,
                },
            )
        assert answer.status_code == 200, answer.text
        return cls(lab, answer.json()["node_id"], answer.json()["credential"])

    async def dial(self, **changes: Any) -> ServerMessage | None:
        """Connect, say hello, and return what is answered."""
        self._socket = await connect(
            f"{self.lab.url.replace('http', 'ws')}/v1/agent/link",
            additional_headers={"Authorization": f"Bearer {self.credential}"},
            proxy=None,
        )
        hello: dict[str, Any] = {
            "protocol": LINK_PROTOCOL,
            "agent_version": "1",
            "node_id": self.node_id,
            "machine_id": "m-1",
            "incarnation": 1,
            "session_id": self.session.session_id if self.session else None,
            "received_seq": self.session.received_seq if self.session else 0,
            "sent_at_ms": 1,
            "inventory": Inventory(capacity=1, cores_milli=1_000, memory_bytes=1, capabilities=[]),
            "allocations": [],
        } | changes
        await self._socket.send(opening_frame(Hello(**hello)))
        text = await self._socket.recv()
        answer = decode_opening_from_server(text)
        if isinstance(answer, Welcome):
            if self.session is not None and self.session.session_id == answer.session_id:
                for frame in self.session.resume(answer.received_seq):
                    await self._socket.send(frame)
            else:
                self.session = LinkSession(answer.session_id)
        return answer

    async def say(self, message: AgentMessage) -> None:
        assert self.session is not None
        text = self.session.send(message)
        if self._socket is not None:
            await self._socket.send(text)

    async def hear(self) -> ServerMessage:
        assert self.session is not None
        assert self._socket is not None
        while True:
            message = self.session.receive_from_server(await self._socket.recv())
            if message is not None:
                return message

    async def cut(self) -> None:
        """The connection is gone without a word."""
        assert self._socket is not None
        self._socket.transport.abort()
        await self._socket.wait_closed()
        self._socket = None

    async def closed(self) -> str:
        """Wait until the server closes; return its reason."""
        assert self._socket is not None
        try:
            while True:
                await self._socket.recv()
        except ConnectionClosed as end:
            return end.rcvd.reason if end.rcvd else ""


async def node_of(lab: Lab, agent: PlayedAgent) -> Any:
    return await lab.engine.read(lambda fleet: fleet.nodes[agent.node_id])


def an_end(number: int = 1) -> EndLease:
    return EndLease(command_id=f"c-{number}", node_epoch=1, lease_id=f"l-{number}", epoch=1)


async def test_a_hello_makes_a_node_ready(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    welcome = await agent.dial()
    assert isinstance(welcome, Welcome)
    assert (welcome.node_id, welcome.heartbeat_ms) == (agent.node_id, 200)

    async def is_ready() -> bool:
        return (await node_of(lab, agent)).phase is NodePhase.READY

    await eventually_async(is_ready)
    assert lab.links.is_connected(agent.node_id)
    await agent.say(Heartbeat(sent_at_ms=7))
    assert await agent.hear() == HeartbeatAck(sent_at_ms=7)


async def test_limits_that_change_are_told_and_a_shorter_one_counts_when_it_is_kept(
    lab: Lab, client: Client
) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    before_ms = lab.links.fence_after_ms
    text = CONFIG.replace("fence_after: 20s", "fence_after: 5s")
    (lab.folder / "hostler.yaml").write_text(text)
    await client.reload_config()
    await agent.say(Heartbeat(sent_at_ms=1, fence_after_ms=before_ms))
    told = await agent.hear()
    assert told == HeartbeatAck(sent_at_ms=1, heartbeat_ms=200, fence_after_ms=5_000)
    assert (await node_of(lab, agent)).fence_after_ms == before_ms == 20_000
    await agent.say(Heartbeat(sent_at_ms=2, fence_after_ms=5_000))
    assert await agent.hear() == HeartbeatAck(sent_at_ms=2)

    async def is_kept() -> bool:
        return bool((await node_of(lab, agent)).fence_after_ms == 5_000)

    await eventually_async(is_kept, what="the shorter limit counts")


async def test_a_command_is_answered(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    delivered = asyncio.create_task(lab.links.deliver(NodeId(agent.node_id), an_end()))
    assert await agent.hear() == an_end()
    answer = CommandAnswered(command_id="c-1", outcome="done")
    await agent.say(answer)
    assert await delivered == answer
    # Nobody waits for this one any more; it disturbs nothing.
    await agent.say(answer)
    await agent.say(Heartbeat(sent_at_ms=1))
    assert await agent.hear() == HeartbeatAck(sent_at_ms=1)


async def test_what_was_under_way_goes_on_after_a_break(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    delivered = asyncio.create_task(lab.links.deliver(NodeId(agent.node_id), an_end()))
    await agent.hear()
    await agent.cut()

    async def is_away() -> bool:
        return not lab.links.is_connected(agent.node_id)

    await eventually_async(is_away)
    with pytest.raises(AgentUnreachable):
        await lab.links.deliver(NodeId(agent.node_id), an_end(2))
    assert (await node_of(lab, agent)).silent_since_at_ms is not None
    await agent.say(CommandAnswered(command_id="c-1", outcome="done"))
    welcome = await agent.dial()
    assert isinstance(welcome, Welcome)
    assert agent.session is not None
    assert welcome.session_id == agent.session.session_id
    assert (await delivered).outcome == "done"

    async def is_heard() -> bool:
        return (await node_of(lab, agent)).silent_since_at_ms is None

    await eventually_async(is_heard)


async def test_an_agent_that_forgot_its_session_begins_anew(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    first = await agent.dial()
    delivered = asyncio.create_task(lab.links.deliver(NodeId(agent.node_id), an_end()))
    await agent.hear()
    await agent.cut()
    agent.session = None
    second = await agent.dial(incarnation=2)
    assert isinstance(first, Welcome)
    assert isinstance(second, Welcome)
    assert first.session_id != second.session_id
    with pytest.raises(AgentSessionLost):
        await delivered


async def test_a_second_connection_replaces_the_first(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    again = PlayedAgent(lab, agent.node_id, agent.credential)
    await again.dial(incarnation=2)
    assert await agent.closed()
    await again.say(Heartbeat(sent_at_ms=3))
    assert await again.hear() == HeartbeatAck(sent_at_ms=3)
    assert (await node_of(lab, agent)).silent_since_at_ms is None


async def test_an_older_agent_of_a_node_is_refused(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial(incarnation=5)
    old = PlayedAgent(lab, agent.node_id, agent.credential)
    refused = await old.dial(incarnation=4)
    assert isinstance(refused, Refused)
    assert (refused.code, refused.is_final) == ("incarnation_stale", False)
    assert lab.links.is_connected(agent.node_id)


async def test_a_retired_node_is_refused_for_good(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    async with lab.http() as http:
        await http.post(f"/v1/nodes/{agent.node_id}/drain", json={"then_retire": True})
    heard = await agent.hear()
    assert isinstance(heard, Refused)
    assert (heard.code, heard.is_final) == ("node_retired", True)
    again = await agent.dial()
    assert isinstance(again, Refused)
    assert again.is_final


@pytest.mark.parametrize("credential", ["", "nonsense", "ha_n-000001.1.AAAA", "hj_n-000001.1.x"])
async def test_a_stranger_does_not_get_in(
    lab: Lab, credential: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await PlayedAgent.joined(lab)
    agent.credential = credential
    with pytest.raises(InvalidStatus) as refused:
        await agent.dial()
    assert refused.value.response.status_code == 401
    assert b"unauthorized" in bytes(refused.value.response.body or b"")
    assert not caplog.records, "it has had its answer"


async def test_a_store_that_is_younger_than_its_agents_does_not_end_them(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    for node_id, epoch in (("n-000099", 1), (agent.node_id, 7)):
        elder = PlayedAgent(lab, node_id, lab.engine.keys.agent_credential(node_id, epoch))
        with pytest.raises(InvalidStatus) as refused:
            await elder.dial()
        assert b"node_from_elsewhere" in bytes(refused.value.response.body or b"")


async def test_a_credential_is_good_for_its_own_node_only(lab: Lab) -> None:
    one = await PlayedAgent.joined(lab, "m-1")
    two = await PlayedAgent.joined(lab, "m-2")
    answer = await PlayedAgent(lab, one.node_id, two.credential).dial()
    assert isinstance(answer, Refused)
    assert answer.code == "node_mismatch"


async def test_silence_is_noticed_and_ends(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()

    async def health() -> Health:
        found: Health = (await node_of(lab, agent)).health
        return found

    async def is_suspect() -> bool:
        return await health() is Health.SUSPECT

    await eventually_async(is_suspect, what="a suspect node")
    assert lab.links.is_connected(agent.node_id)
    await agent.say(Heartbeat(sent_at_ms=1))

    async def is_live() -> bool:
        return await health() is Health.LIVE

    await eventually_async(is_live, what="a live node")


async def test_time_in_which_nobody_listened_does_not_count(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    await lab.links.look()
    session = lab.links.session_of(NodeId(agent.node_id))
    assert session is not None
    # As after a suspended process: everything heard is long ago, and so is the last look.
    session.heard_at_ms -= 60_000
    lab.links._looked_at_ms -= 60_000
    await lab.links.look()
    assert not session.is_silent


@pytest.mark.parametrize("text", ["x", "{}", '{"message": {"type": "heartbeat"}}', "[]"])
async def test_a_broken_frame_ends_the_connection(lab: Lab, text: str) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    assert agent._socket is not None
    await agent._socket.send(text)
    if text != "{}":  # a bare acknowledgement of nothing is allowed
        assert await agent.closed()


async def test_a_log_ends_when_the_session_does(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()

    async def read() -> list[bytes]:
        async with lab.links.logs(
            NodeId(agent.node_id), "a-1", follow=True, tail_bytes=None
        ) as stream:
            return [chunk async for chunk in stream.log()]

    reading = asyncio.create_task(read())
    assert isinstance(await agent.hear(), ReadLogs)
    agent.session = None
    await agent.dial(incarnation=2)
    with pytest.raises(Exception, match="new session"):
        await reading


async def an_allocation(lab: Lab, agent: PlayedAgent) -> str:
    """Have a bundle placed on the played agent, whose start it accepts."""
    async with lab.client() as client:
        await client.submit_bundle(SLEEPER)
    start = await agent.hear()
    assert isinstance(start, StartAllocation)
    await agent.say(CommandAnswered(command_id=start.command_id, outcome="done"))
    return start.allocation_id


async def test_a_log_flows_to_its_end(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    allocation_id = await an_allocation(lab, agent)
    async with lab.http() as http:
        reading = asyncio.create_task(
            http.get(f"/v1/allocations/{allocation_id}/logs", params={"tail_bytes": 9})
        )
        asked = await agent.hear()
        assert isinstance(asked, ReadLogs)
        assert (asked.allocation_id, asked.tail_bytes, asked.follow) == (allocation_id, 9, False)
        chunk = b"x" * 40_000
        for number in range(3):
            offset = number * len(chunk)
            await agent.say(LogChunk(request_id=asked.request_id, data=chunk, offset=offset))
        assert await agent.hear() == StreamCredit(
            request_id=asked.request_id, bytes_count=2 * len(chunk)
        )
        await agent.say(LogEnded(request_id=asked.request_id))
        answer = await reading
    assert answer.content == chunk * 3
    assert answer.headers["hostler-allocation"] == allocation_id


async def test_a_reader_that_leaves_ends_the_log(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    allocation_id = await an_allocation(lab, agent)
    path = f"/v1/allocations/{allocation_id}/logs?follow=true"
    async with lab.http() as http, http.stream("GET", path) as answer:
        assert answer.status_code == 200
        asked = await agent.hear()
        assert isinstance(asked, ReadLogs)
    assert await agent.hear() == CancelStream(request_id=asked.request_id)


async def test_a_log_of_a_node_that_is_away_is_a_problem(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LINK_AWAIT_MS", 50)
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    allocation_id = await an_allocation(lab, agent)
    await agent.cut()

    async def is_away() -> bool:
        return not lab.links.is_connected(agent.node_id)

    await eventually_async(is_away)
    async with lab.http() as http:
        answer = await http.get(f"/v1/allocations/{allocation_id}/logs")
    assert (answer.status_code, answer.json()["code"]) == (503, "unreachable")


async def test_a_log_waits_for_a_node_that_comes_back(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    allocation_id = await an_allocation(lab, agent)
    await agent.cut()
    async with lab.http() as http:
        reading = asyncio.create_task(http.get(f"/v1/allocations/{allocation_id}/logs"))
        await agent.dial()
        while not isinstance(asked := await agent.hear(), ReadLogs):
            pass
        await agent.say(LogChunk(request_id=asked.request_id, data=b"here", offset=0))
        await agent.say(LogEnded(request_id=asked.request_id))
        assert (await reading).content == b"here"


async def test_a_command_has_input_output_signals_and_an_end(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    async with lab.client() as client, client.lease("studio", timeout_ms=10_000) as lease:
        async with lease.start(["cat"], env={"A": "b"}, has_stdin=True) as command:
            start = await agent.hear()
            assert isinstance(start, ExecStart)
            assert (start.lease_id, start.lease_epoch, start.argv, start.env, start.has_stdin) == (
                lease.lease_id,
                lease.view.epoch,
                ["cat"],
                {"A": "b"},
                True,
            )
            await command.write(b"in", eof=True)
            assert await agent.hear() == ExecInput(request_id=start.request_id, data=b"in")
            assert await agent.hear() == ExecInput(request_id=start.request_id, eof=True)
            await command.signal("SIGINT")
            assert await agent.hear() == ExecSignal(request_id=start.request_id, signal="SIGINT")
            await agent.say(ExecOutput(request_id=start.request_id, stream="stdout", data=b"out"))
            await agent.say(ExecEnded(request_id=start.request_id, signal="SIGINT"))
            result = await command.wait()
        assert (result.stdout, result.signal, result.status) == (b"out", "SIGINT", 130)


async def test_a_client_that_leaves_ends_its_command(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    async with lab.client() as client, client.lease("studio", timeout_ms=10_000) as lease:
        async with lease.start(["sleep", "1000"]):
            start = await agent.hear()
            assert isinstance(start, ExecStart)
        assert await agent.hear() == CancelStream(request_id=start.request_id)


async def test_a_command_that_the_node_could_not_run_poisons_the_lease(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    async with lab.client() as client:
        async with client.lease("studio", timeout_ms=10_000) as lease:
            running = asyncio.create_task(lease.run(["true"]))
            start = await agent.hear()
            assert isinstance(start, ExecStart)
            await agent.say(ExecEnded(request_id=start.request_id, error="no space left"))
            with pytest.raises(RunFailed, match="no space left"):
                await running
        assert (await client.lease_view(lease.lease_id)).outcome == "poison"


async def test_a_broken_connection_says_nothing_against_the_node(lab: Lab) -> None:
    agent = await PlayedAgent.joined(lab)
    await agent.dial()
    async with lab.client() as client:
        async with client.lease("studio", timeout_ms=10_000) as lease:
            running = asyncio.create_task(lease.run(["true"]))
            await agent.hear()
            agent.session = None
            await agent.dial(incarnation=2)
            with pytest.raises(RunFailed, match="new session"):
                await running
            with pytest.raises(Rejected, match="list of arguments"):
                await lease.run(["a\0b"])
        assert (await client.lease_view(lease.lease_id)).outcome == "healthy"
