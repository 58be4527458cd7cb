"""Rerun: a decision about a replica made again, also with some facts taken to be different.

Now, on the present fleet, where only the replica's own place is looked for; or in a past step,
which is run again as a whole, with whatever else it decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from hostler.base.errors import Defect, Rejected
from hostler.core.delta import Delta
from hostler.core.explain.alterations import Alteration, apply
from hostler.core.explain.supposing import decided, demand_in, supposing
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyInput
from hostler.core.placement.trace import decision_of
from hostler.core.step import step
from hostler.model import Replica, Trace
from hostler.model.trace import Decision


class Rerun(msgspec.Struct, frozen=True, kw_only=True):
    """A decision made again."""

    revision: int
    """Of the fleet that decided: after the past step, or the present one."""
    at_ms: int
    decision: Decision | None
    """As it comes out; `None`: the step decided nothing about the replica."""
    is_reproduced: bool | None = None
    """Of a past step: it came out as it did then, byte for byte."""
    given: tuple[Alteration, ...] = ()
    """Facts that were taken to be different."""
    altered: Decision | None = None
    """As it comes out with them."""


def decide_again(
    fleet: Fleet, replica: Replica, given: Sequence[Alteration], *, now_ms: int
) -> Rerun:
    """Decide about a replica on the present fleet, as if it had no place.

    Raises:
        Rejected: An alteration does not go with what there is.
    """
    return Rerun(
        revision=fleet.revision,
        at_ms=now_ms,
        decision=_decide(fleet, replica, (), now_ms),
        given=tuple(given),
        altered=_decide(fleet, replica, given, now_ms) if given else None,
    )


def _decide(
    fleet: Fleet, replica: Replica, given: Sequence[Alteration], now_ms: int
) -> Decision | None:
    with supposing(fleet, replica, given, now_ms=now_ms) as txn:
        demand = demand_in(txn, replica.replica_id)
        if demand is None:
            return None
        verdict = decided(txn, demand)
    place = None if verdict.option is None else verdict.option.place
    return decision_of(
        verdict,
        at_ms=now_ms,
        revision=fleet.revision,
        is_recovery=replica.is_recovery,
        node_id=None if place is None else place.node.node_id,
    )


def step_again(
    fleet: Fleet,
    inputs: Sequence[AnyInput],
    now_ms: int,
    replica_id: str,
    given: Sequence[Alteration],
    arm: Callable[[], None],
) -> tuple[Delta, Rerun]:
    """Run a past step again on the fleet before it; the step is left open for its caller to keep.

    Args:
        fleet: As it was before the step.
        inputs: What the step was given.
        now_ms: Its instant.
        replica_id: Whom it is asked about.
        given: Facts to take as different, in a run of their own.
        arm: Lets the timers ring that rang then.

    Raises:
        Rejected: An alteration does not go with what there was.
    """
    altered = None
    if given:
        arm()
        try:
            delta = step(fleet, inputs, now_ms, lambda txn: apply(txn, replica_id, given))
        except Defect as defect:
            raise Rejected(
                "alteration_impossible",
                "that step cannot be run with these facts: they do not go with its other records",
                defect=defect.code,
            ) from defect
        altered = decision_in(delta, replica_id)
        fleet.drop(delta)
    arm()
    delta = step(fleet, inputs, now_ms)
    rerun = Rerun(
        revision=delta.revision,
        at_ms=now_ms,
        decision=decision_in(delta, replica_id),
        given=tuple(given),
        altered=altered,
    )
    return delta, rerun


def decision_in(delta: Delta, replica_id: str) -> Decision | None:
    """Return the last decision that a step made about a replica."""
    trace = delta.changes.get((Trace.KIND, replica_id))
    if not isinstance(trace, Trace) or not trace.decisions:
        return None
    last = trace.decisions[-1]
    return last if last.revision == delta.revision else None
