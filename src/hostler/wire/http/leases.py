"""Leases: asking for a slot, holding it, giving it back, and running commands under it."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from hostler.wire.http.shapes import RequirementView

WAIT_MS_MAX: Final = 60_000
"""Longest that one request stays open; proxies commonly cut at 60 s. Ask again to wait longer."""

TIMEOUT_MS_MAX: Final = 86_400_000
"""Longest time in line."""


class AcquireRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask for a slot of a pool."""

    pool: str
    key: str = ""
    """Fairness key: leases with one key share the pool's per-key cap."""
    requires: RequirementView = RequirementView()
    selector: Annotated[str, Meta(max_length=2_000)] = ""
    """Which labels its node must have: `rack=a, zone in (x, y), gpu, !slow, tenant!=acme`."""
    labels: dict[str, str] = {}
    priority: Annotated[int, Meta(ge=-1_000_000, le=1_000_000)] = 0
    """Higher goes first."""
    affinity_node_id: str | None = None
    """A node to prefer when it is free."""
    affinity_lease_id: str | None = None
    """A former lease whose node to prefer; instead of `affinity_node_id`."""
    affinity_wait_ms: Annotated[int, Meta(ge=0, le=TIMEOUT_MS_MAX)] = 0
    """How long to wait for that node alone before another is taken."""
    is_affinity_required: bool = False
    """Take no other node."""
    excluded_node_ids: Annotated[list[str], Meta(max_length=16)] = []
    """Nodes not to take."""
    share: Literal["none", "same_key", "any"] = "any"
    """With whom to share a node that has several slots."""
    ack_ms: Annotated[int, Meta(ge=1, le=TIMEOUT_MS_MAX)] | None = None
    """Take the lease back, its node untouched, unless the first heartbeat comes so soon after the
    grant."""
    timeout_ms: Annotated[int, Meta(ge=0, le=TIMEOUT_MS_MAX)] = 60_000
    """Longest time in line; 0 refuses at once when nothing is free."""
    lease_ms: Annotated[int, Meta(ge=1, le=TIMEOUT_MS_MAX)] | None = None
    """Ends so long after the last heartbeat; at most what the pool says."""
    wait_ms: Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)] = 0
    """How long this request may stay open while the lease waits in line."""


class LeaseView(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a slot and what became of it."""

    lease_id: str
    pool: str
    holder: str
    key: str
    requires: RequirementView
    selector: str = ""
    labels: dict[str, str]
    priority: int
    affinity_node_id: str | None
    affinity_wait_ms: int
    is_affinity_required: bool
    excluded_node_ids: list[str]
    share: str
    ack_ms: int | None
    is_acknowledged: bool
    """False from the grant to the first heartbeat, where `ack_ms` was given."""
    phase: str
    """`waiting`, `held`, `settled` or `refused`."""
    phase_since_at_ms: int
    requested_at_ms: int
    wait_deadline_at_ms: int
    position: int | None
    """Place in line from 0, where it was asked for one lease that waits."""
    reason: str | None
    """Why it waits, or was refused."""
    reason_detail: str
    node_id: str | None
    epoch: int
    granted_at_ms: int | None
    heartbeat_at_ms: int | None
    lease_ms: int
    expires_at_ms: int | None
    ends_at_ms: int | None
    retiring_at_ms: int | None
    """Its node is to go, and it ends here; release it before, or extend it."""
    retiring_at_ms_max: int | None
    """How late it may be extended to."""
    outcome: str | None
    outcome_detail: str
    cost_micros: int | None
    """What it has cost so far; `null` where its pool has neither prices nor budgets."""


class HeartbeatRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Renew a held lease."""

    epoch: int


class LeasePlanView(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a request for a slot now. Nothing was changed."""

    revision: int
    """The fleet that this is about."""
    can_acquire: bool
    """It would be held at once, or a machine would be launched for it."""
    phase: str
    """`held`, `waiting` or `refused`."""
    code: str
    """Why it would wait or be refused."""
    detail: str
    node_id: str | None
    position: int | None
    """Its place in line from 0."""
    launch_count: int
    """Machines that would be launched because of it."""


class ExtendRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stay longer on a node that is to go."""

    epoch: int
    by_ms: Annotated[int, Meta(ge=1, le=TIMEOUT_MS_MAX)]


class ReleaseRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Give a lease back, or leave the line."""

    epoch: int | None = None
    """Refused unless equal; `null`: whatever it is."""
    outcome: Literal["healthy", "poison"] = "healthy"
    """`poison`: nobody may hold this node again."""
    detail: str = ""


class RevokeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take a lease away from its holder."""

    detail: str = ""


# -- commands under a lease: JSON frames of the WebSocket `/v1/leases/{lease_id}/exec` -----------


class _Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of what goes over the WebSocket; bytes are base64 text."""


class RunStart(_Frame, frozen=True, kw_only=True, tag="start"):
    """First frame of the client: what to run."""

    argv: Annotated[list[str], Meta(min_length=1)]
    env: dict[str, str] = {}
    cwd: str | None = None
    """The lease's own folder, unless given."""
    has_stdin: bool = False


class RunInput(_Frame, frozen=True, kw_only=True, tag="stdin"):
    """Bytes for standard input; `eof` closes it after them."""

    data: bytes = b""
    eof: bool = False


class RunSignal(_Frame, frozen=True, kw_only=True, tag="signal"):
    """A signal, by name, for the command's process group."""

    signal: str


class RunOutput(_Frame, frozen=True, kw_only=True, tag="output"):
    """Bytes that the command wrote."""

    stream: Literal["stdout", "stderr"]
    data: bytes


class RunExit(_Frame, frozen=True, kw_only=True, tag="exit"):
    """Last frame of the server: how the command ended; exactly one is set."""

    exit_code: int | None = None
    signal: str | None = None
    error: str | None = None
    """Why it was not run to its end."""
    is_lease_over: bool = False
    """The lease has ended, and the command with it."""
    is_node_failure: bool = False
    """The node could not run it, rather than that nobody knows how it went."""


RunFromClient: TypeAlias = RunStart | RunInput | RunSignal
RunFromServer: TypeAlias = RunOutput | RunExit
