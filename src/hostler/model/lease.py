"""A lease: a run's time-bounded hold on a slot, from the request to its one settlement."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final

from hostler.base.ids import LeaseId, NodeId
from hostler.base.lifecycle import Lifecycle
from hostler.model.reason import Reason
from hostler.model.record import Record
from hostler.model.shape import NOTHING_REQUIRED, Requirement
from hostler.model.spend import LeaseMeter


class LeasePhase(StrEnum):
    """Waits in line, holds a slot, or is over."""

    WAITING = "waiting"
    HELD = "held"
    SETTLED = "settled"
    REFUSED = "refused"
    """Never held: timed out, cancelled, overloaded, or its pool was disabled."""


class LeaseTrigger(StrEnum):
    """What moves a lease."""

    GRANTED = "granted"
    REFUSED = "refused"
    SETTLED = "settled"


LEASE_LIFECYCLE: Final = Lifecycle(
    name="lease",
    initial=LeasePhase.WAITING,
    terminal=frozenset({LeasePhase.SETTLED, LeasePhase.REFUSED}),
    table={
        (LeasePhase.WAITING, LeaseTrigger.GRANTED): LeasePhase.HELD,
        (LeasePhase.WAITING, LeaseTrigger.REFUSED): LeasePhase.REFUSED,
        (LeasePhase.HELD, LeaseTrigger.SETTLED): LeasePhase.SETTLED,
    },
)


class LeaseOutcome(StrEnum):
    """How a held lease ended. But for healthy and unacknowledged, its node is not held again."""

    HEALTHY = "healthy"
    POISON = "poison"
    EXPIRED = "expired"
    """No heartbeat in time, or held for longer than the pool allows."""
    REVOKED = "revoked"
    NODE_LOST = "node_lost"
    UNACKNOWLEDGED = "unacknowledged"
    """Its holder never took it up, so nothing ran and the node is as it was."""


class Share(StrEnum):
    """With whom a lease may share its node, where a node has several slots."""

    NONE = "none"
    """With nobody."""
    SAME_KEY = "same_key"
    """With leases of its own fairness key."""
    ANY = "any"

    @property
    def rank(self) -> int:
        """Zero for the strictest."""
        return _SHARE_RANKS[self]


_SHARE_RANKS: Final = {Share.NONE: 0, Share.SAME_KEY: 1, Share.ANY: 2}


class Lease(Record, frozen=True, kw_only=True):
    """One request for a slot and what became of it."""

    KIND: ClassVar[str] = "lease"

    lease_id: LeaseId
    pool: str
    holder: str
    """The principal that asked; only it (or an operator) may renew and release."""
    fairness_key: str = ""
    """Leases with one key share the pool's per-key cap."""
    requirement: Requirement = NOTHING_REQUIRED
    labels: dict[str, str] = {}
    priority: int = 0
    """Higher goes first."""
    affinity_node_id: NodeId | None = None
    """A node to prefer when it is free."""
    affinity_wait_ms: int = 0
    """How long it waits for that node alone before it takes another."""
    is_affinity_required: bool = False
    """It takes no other node, ever."""
    is_pinned: bool = False
    """It waits for its node of affinity and takes no other now."""
    excluded_node_ids: tuple[NodeId, ...] = ()
    """Nodes that it does not take."""
    share: Share = Share.ANY
    ack_ms: int | None = None
    """How long its holder may take to send the first heartbeat; `None`: as long as any other."""
    is_acknowledged: bool = True
    """False from the grant to the first heartbeat, where `ack_ms` is given."""
    phase: LeasePhase
    phase_since_at_ms: int
    requested_at_ms: int
    wait_deadline_at_ms: int
    line_at_ms: int
    """Its place in line: as if it had come then. Priority moves it forward in time, so whoever
    waits for long enough comes before any priority."""
    reason: Reason | None = None
    """Why it waits, or why it was refused."""
    reason_detail: str = ""
    node_id: NodeId | None = None
    epoch: int = 0
    """Fencing number on its node, from the grant on."""
    granted_at_ms: int | None = None
    heartbeat_at_ms: int | None = None
    lease_ms: int
    """It expires this long after the last heartbeat."""
    expires_at_ms: int | None = None
    ends_at_ms: int | None = None
    """It ends here whatever its heartbeats, where the pool says so."""
    meter: LeaseMeter | None = None
    """What it runs up while it is held; `None` where its pool has neither prices nor budgets."""
    retiring_at_ms: int | None = None
    """Its node is to go and what is left on it ends here; its holder has been told. `None`: it may
    stay."""
    retiring_at_ms_max: int | None = None
    """How late its holder may have that."""
    outcome: LeaseOutcome | None = None
    outcome_detail: str = ""

    @property
    def key(self) -> str:
        """The lease's id."""
        return self.lease_id
