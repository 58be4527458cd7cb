"""One connection of an agent: hello, welcome, then frames both ways until it breaks."""

from __future__ import annotations

import asyncio
import contextlib
from typing import assert_never

import structlog

from hostler.api import limits
from hostler.api.links.links import AgentLinks
from hostler.api.links.session import AgentSession, Connection
from hostler.api.links.socket import (
    CLOSE_POLICY,
    CLOSE_PROTOCOL,
    CLOSE_TRY_AGAIN,
    LinkSocket,
    SocketClosed,
)
from hostler.api.links.streams import StreamMessage
from hostler.core import inputs
from hostler.core.inputs import AgentSaidHello
from hostler.engine.keys import NodeCredential
from hostler.engine.translate import allocation_fact, allocation_facts, shape_of
from hostler.model import Node
from hostler.model.node import NodePhase, NoticeKind
from hostler.wire.agent import (
    AgentMessage,
    AllocationReported,
    CommandAnswered,
    ExecEnded,
    ExecOutput,
    Heartbeat,
    HeartbeatAck,
    Hello,
    InventoryReported,
    LogChunk,
    LogEnded,
    NoticeReported,
    Refused,
    StreamCredit,
    Welcome,
)
from hostler.wire.link import LinkBroken, decode_opening_from_agent, opening_frame
from hostler.wire.version import LINK_PROTOCOL, negotiate

_log = structlog.get_logger(__name__)


async def serve_agent(links: AgentLinks, socket: LinkSocket, credential: NodeCredential) -> None:
    """Speak with an agent whose credential is ours, until the connection ends."""
    try:
        await socket.accept()
        hello = await _opening(socket)
        match _admit(links, credential, hello):
            case Refused() as refusal:
                await socket.send(opening_frame(refusal))
                await socket.close(CLOSE_POLICY, refusal.message)
            case node:
                await _converse(links, socket, node, hello)
    except LinkBroken as broken:
        _log.warning("agent_link_broken", node_id=credential.node_id, error=str(broken))
        await socket.close(CLOSE_PROTOCOL, broken.message)
    except TimeoutError:
        await socket.close(CLOSE_POLICY, "no hello in time")
    except SocketClosed:
        return


async def _opening(socket: LinkSocket) -> Hello:
    async with asyncio.timeout(limits.LINK_OPENING_MS_MAX / 1_000):
        message = decode_opening_from_agent(await socket.receive())
    if not isinstance(message, Hello):
        raise LinkBroken("link_no_hello", "the first message is a hello")
    return message


def _admit(links: AgentLinks, credential: NodeCredential, hello: Hello) -> Node | Refused:
    """Return the agent's node, or why the agent is not taken."""
    node = links.engine.peek(Node.KIND, credential.node_id)
    if negotiate(LINK_PROTOCOL, hello.protocol) is None:
        return Refused(
            code="protocol_unknown",
            message=f"this server speaks versions {LINK_PROTOCOL.oldest} to {LINK_PROTOCOL.newest}"
            " of the link: upgrade the older of the two",
            is_final=False,
        )
    if not isinstance(node, Node) or node.phase is NodePhase.RETIRED:
        return Refused(code="node_retired", message="the node is retired", is_final=True)
    if hello.node_id != node.node_id:
        return Refused(
            code="node_mismatch", message="the credential is another node's", is_final=False
        )
    if hello.incarnation < node.incarnation:
        # Not final: what runs on the node belongs to the newer agent now.
        return Refused(
            code="incarnation_stale",
            message="a newer agent of this node has spoken; this one shall end",
            is_final=False,
        )
    return node


async def _converse(links: AgentLinks, socket: LinkSocket, node: Node, hello: Hello) -> None:
    connection = Connection()
    session, is_new = _session_for(links, node, hello)
    # Connected first, so that commands which follow from the hello find the link; what they put
    # there waits until the welcome is written.
    links.connect(session, connection)
    try:
        if is_new:
            await links.engine.observe(_said(session, hello))
        else:
            await links.heard(session)
        if not await links.has_authority(session):
            await socket.close(CLOSE_TRY_AGAIN, "the node's epoch has risen")
            return
        await links.limits_said(session, hello.fence_after_ms)
        connection.begin(_welcome(session, hello))
        await _carry(links, socket, session, connection)
    finally:
        connection.end("the connection broke")
        await links.disconnected(session, connection)


async def _carry(
    links: AgentLinks, socket: LinkSocket, session: AgentSession, connection: Connection
) -> None:
    """Carry frames both ways until either way ends."""
    writing = asyncio.create_task(_write(socket, connection))
    reading = asyncio.create_task(_read(links, socket, session, connection))
    try:
        await asyncio.wait((reading, writing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        connection.end("the connection broke")
        if not reading.done():
            reading.cancel()
        await asyncio.gather(writing, return_exceptions=True)
    with contextlib.suppress(asyncio.CancelledError):
        await reading


def _session_for(links: AgentLinks, node: Node, hello: Hello) -> tuple[AgentSession, bool]:
    """Return the session to go on with, and whether it is a new one."""
    session = links.session_of(node.node_id)
    if (
        session is not None
        and session.incarnation == hello.incarnation
        and session.node_epoch == node.epoch
        and session.link.can_resume(hello.session_id, hello.received_seq)
    ):
        return session, False
    now_ms = links.engine.clock.now_ms()
    session = AgentSession(node.node_id, node.epoch, hello.incarnation, now_ms=now_ms)
    links.begin(session)
    return session, True


def _welcome(session: AgentSession, hello: Hello) -> list[str]:
    """Give the frames that begin the connection: the welcome, and what the agent has missed."""
    welcome = Welcome(
        protocol=negotiate(LINK_PROTOCOL, hello.protocol) or LINK_PROTOCOL.newest,
        node_id=session.node_id,
        node_epoch=session.node_epoch,
        session_id=session.link.session_id,
        received_seq=session.link.received_seq,
        heartbeat_ms=session.limits_told.heartbeat_ms,
        fence_after_ms=session.limits_told.fence_after_ms,
    )
    frames = [session.link.send(welcome)]
    if hello.session_id == session.link.session_id:
        # What has been put into line since is among them; the agent drops what comes twice.
        frames += session.link.resume(hello.received_seq)
    return frames


def _said(session: AgentSession, hello: Hello) -> AgentSaidHello:
    inventory = hello.inventory
    is_reported = any(getattr(inventory, name) is not None for name in inventory.__struct_fields__)
    return AgentSaidHello(
        node_id=session.node_id,
        incarnation=hello.incarnation,
        shape=shape_of(inventory) if is_reported else None,
        allocations=allocation_facts(hello.allocations),
    )


async def _write(socket: LinkSocket, connection: Connection) -> None:
    while (text := await connection.take()) is not None:
        await socket.send(text)
    await socket.close(CLOSE_TRY_AGAIN, connection.ending or "")


async def _read(
    links: AgentLinks, socket: LinkSocket, session: AgentSession, connection: Connection
) -> None:
    while True:
        text = await socket.receive()
        if session.connection is not connection:
            return
        message = session.link.receive_from_agent(text)
        await links.heard(session)
        if message is not None and not await _handle(links, session, message):
            return
        acknowledgement = session.link.ack_due()
        if acknowledgement is not None:
            connection.put(acknowledgement)


async def _handle(links: AgentLinks, session: AgentSession, message: AgentMessage) -> bool:
    """Act on a message; say whether to go on."""
    match message:
        case Heartbeat(sent_at_ms=sent_at_ms, fence_after_ms=fence_after_ms):
            # The answer extends the agent's authority, so it is given to the present holder only.
            if not await links.has_authority(session):
                return False
            told = session.limits_told
            await links.limits_said(session, fence_after_ms)
            now = session.limits_told
            session.send(
                HeartbeatAck(sent_at_ms=sent_at_ms)
                if now == told
                else HeartbeatAck(
                    sent_at_ms=sent_at_ms,
                    heartbeat_ms=now.heartbeat_ms,
                    fence_after_ms=now.fence_after_ms,
                )
            )
        case InventoryReported(inventory=inventory):
            await links.engine.observe(
                inputs.InventoryReported(node_id=session.node_id, shape=shape_of(inventory))
            )
        case NoticeReported(kind=kind, left_ms=left_ms):
            await links.engine.observe(
                inputs.NoticeReported(
                    node_id=session.node_id, kind=NoticeKind(kind), left_ms=left_ms
                )
            )
        case AllocationReported(report=report):
            await links.engine.observe(
                inputs.AllocationReported(node_id=session.node_id, fact=allocation_fact(report))
            )
        case CommandAnswered():
            session.settle(message)
        case StreamCredit() | LogChunk() | LogEnded() | ExecOutput() | ExecEnded():
            _feed(session, message)
        case Hello():
            raise LinkBroken("link_second_hello", "a hello begins a connection, and nothing else")
        case _:
            assert_never(message)
    return True


def _feed(session: AgentSession, message: StreamCredit | StreamMessage) -> None:
    """Hand a stream what is for it; it may have been left meanwhile."""
    stream = session.stream(message.request_id)
    if stream is None:
        return
    if isinstance(message, StreamCredit):
        stream.credit(message.bytes_count)
    else:
        stream.put(message)
