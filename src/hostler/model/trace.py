"""A trace: the attempts behind the placements of one replica, bounded and durable."""

from __future__ import annotations

from typing import ClassVar

from hostler.base.ids import AllocationId, NodeId, ReplicaId
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.record import Record, Value


class Candidate(Value, frozen=True, kw_only=True):
    """A node that passed every filter, with the parts of its score. Lower sorts first."""

    node_id: NodeId
    score: tuple[int, ...]


class FilteredNode(Value, frozen=True, kw_only=True):
    """A node that did not pass, and the first filter that refused it."""

    node_id: NodeId
    reason: Reason
    detail: str = ""


class Attempt(Value, frozen=True, kw_only=True):
    """One look at one tier of one pool."""

    pool: str
    tier: str
    candidate_count: int
    """Nodes of the tier before the filters: filtered + scored = candidates."""
    filtered_count: int
    scored_count: int
    filtered_by_reason: dict[str, int] = {}
    filtered: tuple[FilteredNode, ...] = ()
    """The first of them, up to a bound."""
    scored: tuple[Candidate, ...] = ()
    """The best of them, best first, up to a bound."""
    outcome: str = ""
    """`placed`, `launched`, `exhausted`, or the reason why the tier could not launch."""


class Victim(Value, frozen=True, kw_only=True):
    """An allocation that ends so that another replica can have its room."""

    allocation_id: AllocationId
    replica_id: ReplicaId
    band: Band
    is_primary: bool
    age_ms: int
    """How long it had run; 0 if it did not yet."""


class Decision(Value, frozen=True, kw_only=True):
    """One placement decision, or one decision that nothing fits."""

    at_ms: int
    is_recovery: bool
    outcome: str
    """`placed`, `launched` or `failed`; `claimed` when lower work gives way, and `preempted` when
    it is this replica that did."""
    node_id: NodeId | None = None
    offer: str = ""
    """Of the machine that was asked for, where one was."""
    devices: dict[str, tuple[str, ...]] = {}
    """Named devices that were chosen with the node, by kind."""
    rule: str = ""
    """The policy line that chose, in words."""
    reason: Reason | None = None
    """Why nothing was chosen."""
    revision: int = 0
    """Of the step that decided: the journal replays it, as far as it reaches back."""
    degraded_by: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    victims: tuple[Victim, ...] = ()
    """What gives way to it."""


class Trace(Record, frozen=True, kw_only=True):
    """The latest decisions about one replica, newest last."""

    KIND: ClassVar[str] = "trace"

    replica_id: ReplicaId
    decisions: tuple[Decision, ...] = ()

    @property
    def key(self) -> str:
        """The replica's id."""
        return self.replica_id
