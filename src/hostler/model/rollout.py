"""A rollout: how far a bundle's replicas are in taking over a changed launch, and the way back."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final

from hostler.base.ids import BundleId
from hostler.base.lifecycle import Lifecycle
from hostler.model.bundle import Bundle
from hostler.model.record import Record


class RolloutPhase(StrEnum):
    """Where a rollout is."""

    ROLLING = "rolling"
    """On its way to what was submitted last."""
    ROLLING_BACK = "rolling_back"
    """On its way back to what was there before."""
    HELD = "held"
    """It failed and stands still; somebody must resume or undo it, or submit something better."""
    DONE = "done"
    ROLLED_BACK = "rolled_back"


class RolloutTrigger(StrEnum):
    """What moves a rollout."""

    TURNED_BACK = "turned_back"
    """It failed and its policy says so, or an operator undoes it."""
    FAILED = "failed"
    RESUMED = "resumed"
    FINISHED = "finished"


class Steering(StrEnum):
    """What an operator says to a rollout."""

    PAUSE = "pause"
    RESUME = "resume"
    UNDO = "undo"


_P = RolloutPhase
_T = RolloutTrigger

ROLLOUT_LIFECYCLE: Final = Lifecycle[RolloutPhase, RolloutTrigger](
    name="rollout",
    initial=RolloutPhase.ROLLING,
    terminal=frozenset({_P.DONE, _P.ROLLED_BACK}),
    table={
        (_P.ROLLING, _T.TURNED_BACK): _P.ROLLING_BACK,
        (_P.HELD, _T.TURNED_BACK): _P.ROLLING_BACK,
        (_P.ROLLING, _T.FAILED): _P.HELD,
        (_P.ROLLING_BACK, _T.FAILED): _P.HELD,
        (_P.HELD, _T.RESUMED): _P.ROLLING,
        (_P.ROLLING, _T.FINISHED): _P.DONE,
        (_P.ROLLING_BACK, _T.FINISHED): _P.ROLLED_BACK,
    },
)


class Rollout(Record, frozen=True, kw_only=True):
    """The latest rollout of one bundle.

    It stays after its end, so that it can be undone, until the next one takes the record's place.
    """

    KIND: ClassVar[str] = "rollout"

    bundle_id: BundleId
    generation: int
    """The bundle's generation to which it goes."""
    former: Bundle | None = None
    """The bundle as it was before: where turning back leads. `None`: nothing was ever whole."""
    is_back: bool = False
    """It leads to what was there before."""
    is_paused: bool = False
    phase: RolloutPhase
    phase_since_at_ms: int
    begun_at_ms: int
    """What was placed before this is not of this rollout."""
    begun_by: str = ""
    progress_at_ms: int
    """When it last got further; its deadline counts from here."""
    settled_count: int = 0
    """Replicas that are up to date, ready, and have stayed so for long enough."""
    replica_count: int = 0
    """Replicas that are to be so."""
    waits_for: str = ""
    """What it waits for, in words."""
    evidence: str = ""
    """Why it failed, in words: which replica, how it ended and where."""

    @property
    def key(self) -> str:
        """The bundle's id: a bundle has one rollout at a time."""
        return self.bundle_id

    @property
    def is_under_way(self) -> bool:
        """True while replicas are to be replaced."""
        return self.phase in (RolloutPhase.ROLLING, RolloutPhase.ROLLING_BACK)
