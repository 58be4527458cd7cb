"""What operators say to rollouts: pause, go on, turn back."""

from __future__ import annotations

from hostler.core import rollout
from hostler.core.events import EventKind
from hostler.core.inputs import SteerRollout
from hostler.core.txn import Txn
from hostler.model import Rollout
from hostler.model.bundle import BundlePhase
from hostler.model.rollout import RolloutPhase, RolloutTrigger, Steering


def steer(txn: Txn, one: SteerRollout) -> None:
    """Write down what an operator wants of a rollout, or say why that cannot be."""
    bundle = txn.fleet.bundles.get(one.bundle_id)
    if bundle is None:
        txn.refuse(
            one.request_id, "bundle_not_found", "there is no bundle of this name", is_missing=True
        )
        return
    latest = txn.fleet.rollouts.get(one.bundle_id)
    problem = _problem(latest, one.steering)
    if bundle.phase is not BundlePhase.ACTIVE:
        problem = ("bundle_deleting", "the bundle is being deleted")
    if latest is None or problem is not None:
        code, message = problem or ("no_rollout", "the bundle has never been rolled out")
        txn.refuse(one.request_id, code, message, is_conflict=True)
        return
    txn.accept(one.request_id, one.bundle_id, is_repeat=not _steer(txn, latest, one))


def _problem(latest: Rollout | None, steering: Steering) -> tuple[str, str] | None:
    if latest is None:
        return "no_rollout", "the launch of its jobs was never changed: there is no rollout"
    if steering is Steering.UNDO:
        if latest.former is None:
            return "nothing_to_undo", "there is nothing whole to go back to"
        return None
    if steering is Steering.RESUME and latest.phase is RolloutPhase.HELD:
        return None
    if not latest.is_under_way:
        return "rollout_over", f"the rollout is not under way: it is {latest.phase.value}"
    return None


def _steer(txn: Txn, latest: Rollout, one: SteerRollout) -> bool:
    """Do it; return whether that is news."""
    about = {"bundle": one.bundle_id, "principal": one.principal}
    match one.steering:
        case Steering.PAUSE:
            if latest.is_paused:
                return False
            txn.change(latest, is_paused=True)
            txn.emit(EventKind.ROLLOUT_PAUSED, about)
        case Steering.RESUME:
            if latest.phase is RolloutPhase.HELD:
                txn.move(latest, RolloutTrigger.RESUMED, is_paused=False, progress_at_ms=txn.now_ms)
            elif latest.is_paused:
                txn.change(latest, is_paused=False, progress_at_ms=txn.now_ms)
            else:
                return False
            txn.emit(EventKind.ROLLOUT_RESUMED, about)
        case Steering.UNDO:
            rollout.turn_back(txn, latest, one.principal, f"undone by {one.principal}")
    return True
