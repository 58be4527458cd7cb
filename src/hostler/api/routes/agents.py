"""Agents: joining the fleet once, and the link."""

from __future__ import annotations

from typing import NamedTuple

from litestar import Response, post, websocket

from hostler.api.auth import DEVELOPER, authorize, bearer_of, by_secret, is_door_open
from hostler.api.context import Api, Caller, api_of
from hostler.api.errors import Denied, HttpRequest
from hostler.api.gateway import common, record_of, submit
from hostler.api.http import Operation, answer, body_of, described
from hostler.api.links.connection import serve_agent
from hostler.api.links.socket import AnySocket, Socket
from hostler.base.errors import HostlerError
from hostler.base.ids import MachineId, NodeId
from hostler.core.inputs import JoinAgent
from hostler.engine.keys import NodeCredential
from hostler.model import Counter, Node
from hostler.model.token import Role
from hostler.wire.agent import AGENT_JOIN_PATH, AGENT_LINK_PATH, JoinRequest, JoinResponse


class _Place(NamedTuple):
    """What a join token is good for."""

    caller: Caller
    node_id: NodeId | None
    pool: str
    tier: str


@post(
    AGENT_JOIN_PATH,
    **described(
        Operation(
            summary="Become a node of the fleet (agents, once in a node's life)",
            body=JoinRequest,
            answer=JoinResponse,
            statuses=(401, 403, 404, 409),
        )
    ),
)
async def join(request: HttpRequest) -> Response[bytes]:
    """The token says which node, or which pool and tier; the answer holds a credential."""
    api = api_of(request)
    asked = await body_of(request, JoinRequest)
    place = _place(api, asked)
    accepted = await submit(
        api,
        JoinAgent(
            node_id=place.node_id,
            pool=place.pool,
            tier=place.tier,
            machine_id=None if asked.machine_id is None else MachineId(asked.machine_id),
            hostname=asked.hostname,
            **common(request, place.caller),
        ),
    )
    node = record_of(api, Node, accepted.subject_id)
    credential = api.engine.keys.agent_credential(node.node_id, node.epoch)
    return answer(JoinResponse(node_id=node.node_id, credential=credential))


def _place(api: Api, asked: JoinRequest) -> _Place:
    """Say where an agent may join.

    Raises:
        Denied: No token, or not one for agents.
    """
    if asked.join_token is None:
        if not is_door_open(api):
            raise Denied(401, "unauthorized", "joining needs a token: `hostler token create`")
        return _Place(DEVELOPER, None, asked.pool or "", asked.tier or "")
    launched = api.engine.keys.verify_join_token(asked.join_token)
    if launched is not None:
        node = api.engine.peek(Node.KIND, launched.node_id)
        if isinstance(node, Node) and node.epoch != launched.epoch:
            raise Denied(401, "token_expired", "this join token is of an older epoch of its node")
        agent = Caller(principal=f"agent:{launched.node_id}", role=Role.AGENT)
        return _Place(agent, launched.node_id, "", "")
    caller = by_secret(api, asked.join_token)
    if caller.role is not Role.AGENT:
        raise Denied(403, "forbidden", "joining needs a token with the role agent")
    return _Place(caller, None, caller.pool, caller.tier)


@websocket(AGENT_LINK_PATH)
async def link(socket: AnySocket) -> None:
    """One agent's link, for as long as it holds."""
    api, connection = api_of(socket), Socket(socket)
    try:
        await authorize(socket)
        credential = _credential(api, socket)
    except HostlerError as error:
        api.refusals.note(socket, error)
        await connection.deny(error)
        return
    await serve_agent(api.links, connection, credential)


def _credential(api: Api, socket: AnySocket) -> NodeCredential:
    """Return whose credential the agent shows.

    One of an older epoch still tells which node this is; what the agent may do is said by the epoch
    in the welcome. A retired node is told so after the handshake, so that its agent ends.

    Raises:
        Denied: Not one that we made.
    """
    found = api.engine.keys.verify_agent_credential(bearer_of(socket) or "")
    if found is None:
        raise Denied(401, "unauthorized", "this is not the credential of an agent of ours")
    node = api.engine.peek(Node.KIND, found.node_id)
    is_known = found.epoch <= node.epoch if isinstance(node, Node) else _was_given(api, found)
    if not is_known:
        # The store is younger than the key: lost, or restored from a backup. The agent keeps its
        # work and goes on asking; a retired node's agent would be told to end it.
        raise Denied(401, "node_from_elsewhere", "this store does not know such a node (yet)")
    return found


def _was_given(api: Api, credential: NodeCredential) -> bool:
    """Say whether this store has ever given out the node's id."""
    counter = api.engine.peek(Counter.KIND, "n")
    number = credential.node_id.partition("-")[2]
    return isinstance(counter, Counter) and number.isdecimal() and int(number) <= counter.value


ROUTES = [join, link]
