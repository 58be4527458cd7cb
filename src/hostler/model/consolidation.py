"""Consolidation: emptying nodes that are little used, so that their machines can go."""

from __future__ import annotations

from typing import ClassVar

from hostler.base.ids import NodeId
from hostler.model.reason import Reason
from hostler.model.record import Record, Value


class ConsolidationPolicy(Value, frozen=True, kw_only=True):
    """When a pool empties a node that is little used, and how much of it is done."""

    used_percent_max: int = 50
    """Of whatever the node has least left of; a node that is used more is left as it is."""
    settle_ms: int = 600_000
    """How long the node, and all that runs on it, must have been ready."""
    payback_ms: int = 3_600_000
    """Within which the price of the machine must exceed the cost of the moves."""
    move_cost_micros: int = 10_000
    """What moving one replica is held to cost."""
    move_count_max: int = 20
    """Replicas moved in the pool within the window."""
    window_ms: int = 3_600_000
    spacing_ms: int = 7_200_000
    """For which a replica that was moved is left alone, and a node that could not be emptied."""


class LeftAlone(Value, frozen=True, kw_only=True):
    """Why a node could not be emptied when that was last looked at."""

    node_id: NodeId
    reason: Reason
    detail: str
    since_at_ms: int
    until_at_ms: int
    """Not looked at again before; each time in a row is twice as far away."""
    count: int = 1
    """Times in a row."""


class Consolidation(Record, frozen=True, kw_only=True):
    """What is remembered of the consolidation of one pool. A pool without it has none."""

    KIND: ClassVar[str] = "consolidation"

    pool: str
    node_id: NodeId | None = None
    """The node that is being emptied; one at a time."""
    begun_at_ms: int = 0
    deadline_at_ms: int = 0
    """What is left on it then stays, and the node takes work again."""
    look_at_ms: int | None = None
    """When the next node is looked for; `None`: when something has changed."""
    looked_until: str = ""
    """Looking is done in parts: the last node of the part before."""
    moved_at_ms: tuple[int, ...] = ()
    """The moves within the window, oldest first; bounded by the policy."""
    left_alone: tuple[LeftAlone, ...] = ()
    """Nodes that could not be emptied, oldest first; bounded."""

    @property
    def key(self) -> str:
        """The pool's name."""
        return self.pool
