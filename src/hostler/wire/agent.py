"""The messages between an agent and the server, and how they are written.

The values that they carry (inventory, launch, reports) are in `hostler.wire.work`.

One WebSocket (path `AGENT_LINK_PATH`) carries JSON text frames. A frame is
`{"seq", "ack", "message"}`; a message is a tagged union with the tag field `type` in snake case
(`start_allocation`). Bytes are base64 text. Numbering, acknowledgement and resumption are
`hostler.wire.link`'s business.

How a link begins:

1. `POST AGENT_JOIN_PATH` with a `JoinRequest`, once in the life of a node, gives the agent a
   credential of its own. The `Idempotency-Key` header makes a repeated join the same join.
2. The agent opens the WebSocket with `Authorization: Bearer CREDENTIAL` and says `Hello`.
3. The server answers `Welcome` or `Refused`. If it holds the session that the hello
   names, and can go on from there, it names the same `session_id` and both sides send again what
   the other has not received; `Hello.allocations` is then to be ignored, because older reports may
   still be on their way. Otherwise it names a new session: both counters start at nought, the
   hello's allocations are the whole truth, the server sends its unsettled commands again, and
   every log stream and every leased command of the old session is over (the agent kills them).

How commands are answered: a message with a `command_id` may be sent any number of times and is
answered by `CommandAnswered` with the same id. `StartAllocation` is answered when the start is
durable on the node (how it goes on is told by reports), `ConfigureAllocation` and `AssignRole` when
the job can read its configuration or role, `StopAllocation` and `EndLease` when the thing has
ended, and `CheckReady` when the check has; each after the report that says so. Stopping what is
unknown is done. A lower `node_epoch`, `epoch` or `lease_epoch` than the agent has seen is refused.

Streams (`ReadLogs`, `ExecStart`) have back-pressure: in each direction a sender may have at most
`STREAM_WINDOW_BYTES` of data under way per `request_id`; the receiver hands back room with
`StreamCredit` as its reader takes the data. `LogEnded` and `ExecEnded` come after the last data.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

from hostler.wire.version import ProtocolRange
from hostler.wire.work import AllocationReport, Config, Inventory, Launch

AGENT_JOIN_PATH: Final = "/v1/agent/join"
AGENT_LINK_PATH: Final = "/v1/agent/link"

STREAM_WINDOW_BYTES: Final = 256 * 1024
"""Data under way per stream and direction. Enough to fill a link of 100 Mbit/s at 20 ms, and small
beside what a node has even with every stream stalled."""

STREAM_CHUNK_BYTES_MAX: Final = 32 * 1024
"""Most data in one message, so that a heartbeat never waits long behind a chunk."""


def _tag(name: str) -> str:
    """`StartAllocation` becomes `start_allocation`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class _Tagged(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=_tag):
    """Base of everything that is told apart by its `type` field."""


# -- joining ------------------------------------------------------------------------------------


class JoinRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent sends once to become a node of the fleet."""

    join_token: str | None = None
    """May be absent only towards a loopback server that runs without tokens."""
    hostname: str
    machine_id: str | None = None
    """The provider's name of the machine, told to the agent when the machine was launched."""
    node_id: str | None = None
    """The record that the machine was launched for; `None` asks for a new node."""
    pool: str | None = None
    """Honoured only by a loopback server without tokens; otherwise the token says it."""
    tier: str | None = None
    """As `pool`."""


class JoinResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of the agent from now on."""

    node_id: str
    credential: str
    """Secret; sent as bearer token on every link of this node."""


# -- agent to server ----------------------------------------------------------------------------


class Hello(_Tagged, frozen=True, kw_only=True):
    """First message of every connection."""

    protocol: ProtocolRange
    agent_version: str
    node_id: str
    machine_id: str | None
    incarnation: int
    """Raised at each start of the agent; the server refuses a lower one than it has seen."""
    session_id: str | None
    """The session to go on with; `None` asks for a new one."""
    received_seq: int
    sent_at_ms: int
    inventory: Inventory
    allocations: list[AllocationReport]
    """All that this agent knows of, also what has ended and is not yet forgotten."""
    fence_after_ms: int = 0
    """As in a heartbeat."""


class Heartbeat(_Tagged, frozen=True, kw_only=True):
    """The agent is alive. Not numbered; a lost one is not sent again."""

    sent_at_ms: int
    fence_after_ms: int = 0
    """The limit that its authority goes by: a shorter one that it was told holds only when the
    authority of the longer one is used up. 0: it does not know."""


class InventoryReported(_Tagged, frozen=True, kw_only=True):
    """The inventory has changed since the hello."""

    inventory: Inventory


class NoticeReported(_Tagged, frozen=True, kw_only=True):
    """The machine is about to be taken back."""

    kind: Literal["rebalance", "terminate"]
    left_ms: int
    """How long it stays; for a rebalance notice nobody knows, and it is nought."""


class AllocationReported(_Tagged, frozen=True, kw_only=True):
    """The report of one allocation has changed."""

    report: AllocationReport


class CommandAnswered(_Tagged, frozen=True, kw_only=True):
    """How a command ended."""

    command_id: str
    outcome: Literal["done", "refused"]
    code: str = ""
    """Stable reason of a refusal, such as `epoch_stale`."""
    message: str = ""


class LogChunk(_Tagged, frozen=True, kw_only=True):
    """Bytes of a log. `offset` counts from the first byte of this stream."""

    request_id: str
    data: bytes
    offset: int


class LogEnded(_Tagged, frozen=True, kw_only=True):
    """No more of this log follows; `error` is `None` when all was read."""

    request_id: str
    error: str | None = None


class ExecOutput(_Tagged, frozen=True, kw_only=True):
    """Bytes that a leased command wrote."""

    request_id: str
    stream: Literal["stdout", "stderr"]
    data: bytes


class ExecEnded(_Tagged, frozen=True, kw_only=True):
    """A leased command is over; exactly one of the three is set."""

    request_id: str
    exit_code: int | None = None
    signal: str | None = None
    error: str | None = None
    """Why it was not started, or was killed by the agent."""


# -- both ways ----------------------------------------------------------------------------------


class StreamCredit(_Tagged, frozen=True, kw_only=True):
    """The reader of a stream took so many bytes; the sender may send as many more."""

    request_id: str
    bytes_count: int


# -- server to agent ----------------------------------------------------------------------------


class Welcome(_Tagged, frozen=True, kw_only=True):
    """The link is up."""

    protocol: int
    """The version chosen by `hostler.wire.version.negotiate`."""
    node_id: str
    node_epoch: int
    session_id: str
    received_seq: int
    heartbeat_ms: int
    fence_after_ms: int
    """The agent's authority ends so long after the send time of its last acknowledged heartbeat;
    the hello counts as one."""


class Refused(_Tagged, frozen=True, kw_only=True):
    """The server does not take this agent. A final refusal ends the agent and its work."""

    code: str
    message: str
    is_final: bool


class HeartbeatAck(_Tagged, frozen=True, kw_only=True):
    """Echo of the heartbeat's `sent_at_ms`."""

    sent_at_ms: int
    heartbeat_ms: int = 0
    """With the next: other limits than those that the agent was told last. 0: the same."""
    fence_after_ms: int = 0


class StartAllocation(_Tagged, frozen=True, kw_only=True):
    """Run this. With an `allocation_id` and `epoch` that are known it is the same start."""

    command_id: str
    node_epoch: int
    allocation_id: str
    epoch: int
    launch: Launch
    config: Config | None = None
    """Of the time at which this was sent."""


class ConfigureAllocation(_Tagged, frozen=True, kw_only=True):
    """Give a running job this configuration, unless it has it or a later one."""

    command_id: str
    node_epoch: int
    allocation_id: str
    epoch: int
    config: Config


class AssignRole(_Tagged, frozen=True, kw_only=True):
    """Tell a running job its role, unless it was told a later one."""

    command_id: str
    node_epoch: int
    allocation_id: str
    epoch: int
    role: str
    term: int
    """Rises with each change of the role of this allocation."""


class StopAllocation(_Tagged, frozen=True, kw_only=True):
    """Stop the allocation: its stop signal, `grace_ms` of patience, then kill."""

    command_id: str
    node_epoch: int
    allocation_id: str
    epoch: int
    grace_ms: int
    reason: str = ""


class ReadLogs(_Tagged, frozen=True, kw_only=True):
    """Send the last `tail_bytes` (`None`: all that is kept) of a log, and go on if `follow`."""

    request_id: str
    allocation_id: str
    follow: bool = False
    tail_bytes: int | None = None


class ExecStart(_Tagged, frozen=True, kw_only=True):
    """Run a command under a lease, in the lease's folder unless `cwd` says otherwise."""

    request_id: str
    lease_id: str
    lease_epoch: int
    argv: list[str]
    env: dict[str, str] = {}
    cwd: str | None = None
    has_stdin: bool = False
    held_lease_ids: list[str] | None = None
    """Every lease that is held on the node, this one included. What runs under another one with a
    lower epoch is over and is cleared away first; `None`: not told, `EndLease` has to say it."""


class ExecInput(_Tagged, frozen=True, kw_only=True):
    """Bytes for the command's standard input; `eof` closes it after them."""

    request_id: str
    data: bytes = b""
    eof: bool = False


class ExecSignal(_Tagged, frozen=True, kw_only=True):
    """Send a signal, by name, to the command's process group."""

    request_id: str
    signal: str


class CancelStream(_Tagged, frozen=True, kw_only=True):
    """Nobody reads this stream any more: a log stream ends, a leased command is killed."""

    request_id: str


class CheckReady(_Tagged, frozen=True, kw_only=True):
    """Run a command on the node, to learn whether it is ready for work.

    It is answered when the command has ended: `refused` when it failed or took too long, with the
    end of what it wrote.
    """

    command_id: str
    node_epoch: int
    argv: list[str]
    timeout_ms: int


class EndLease(_Tagged, frozen=True, kw_only=True):
    """Kill every command of the lease and whatever they left, and remove its folder.

    Then run the clean-up, if there is one. It is answered after that: `refused` when that failed.
    """

    command_id: str
    node_epoch: int
    lease_id: str
    epoch: int
    clean_up: list[str] = []
    clean_up_ms: int = 0


class Shutdown(_Tagged, frozen=True, kw_only=True):
    """Stop all work, then end the agent."""

    reason: str = ""


AgentMessage: TypeAlias = (
    Hello
    | Heartbeat
    | InventoryReported
    | NoticeReported
    | AllocationReported
    | CommandAnswered
    | LogChunk
    | LogEnded
    | ExecOutput
    | ExecEnded
    | StreamCredit
)
"""What an agent sends."""

ServerMessage: TypeAlias = (
    Welcome
    | Refused
    | HeartbeatAck
    | StartAllocation
    | ConfigureAllocation
    | AssignRole
    | StopAllocation
    | ReadLogs
    | ExecStart
    | ExecInput
    | ExecSignal
    | CancelStream
    | CheckReady
    | EndLease
    | Shutdown
    | StreamCredit
)
"""What a server sends."""

LinkMessage: TypeAlias = AgentMessage | ServerMessage

UNNUMBERED: Final = (Hello, Heartbeat, Welcome, Refused, HeartbeatAck)
"""Kinds that belong to one connection, not to the session: never kept and never sent again."""
