"""Recent: the last steps and plans, so that a plan can be held to what has happened since.

Kept in memory and within bounds: after a restart, or long ago, nothing is known, and that is said.
"""

from __future__ import annotations

from collections import deque

from hostler.core.binding import Gist, gist_of, plan_key, stale
from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.core.inputs import SubmitBundle
from hostler.core.planning import Plan
from hostler.core.replies import Refused
from hostler.engine.limits import PLANS_KEPT_MAX, STEPS_KEPT_MAX


class Recent:
    """What was lately decided and planned."""

    def __init__(self) -> None:
        self._deltas: deque[Delta] = deque(maxlen=STEPS_KEPT_MAX)
        self._plans: dict[str, Gist] = {}

    def note(self, delta: Delta) -> None:
        """Remember a step that is durable."""
        self._deltas.append(delta)

    def remember(self, submission: SubmitBundle, made: Plan) -> None:
        """Remember what a plan said."""
        if len(self._plans) >= PLANS_KEPT_MAX:
            del self._plans[next(iter(self._plans))]
        self._plans[plan_key(submission, made.revision)] = gist_of(made)

    def stale(
        self, fleet: Fleet, submission: SubmitBundle, revision: int, now_ms: int
    ) -> Refused | None:
        """Return why a submission is not what was planned at a revision, or `None` when it is."""
        remembered = self._plans.get(plan_key(submission, revision))
        return stale(fleet, submission, revision, self._since(revision), remembered, now_ms)

    def _since(self, revision: int) -> list[Delta] | None:
        found = [delta for delta in self._deltas if delta.revision > revision]
        is_whole = bool(found) and found[0].revision == revision + 1
        return found if is_whole else None
