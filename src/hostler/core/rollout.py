"""What a change of a bundle means for what runs, and where a rollout begins and turns back."""

from __future__ import annotations

from msgspec.structs import replace

from hostler.base.encoding import digest, encode
from hostler.core.events import EventKind
from hostler.core.fleet import Fleet
from hostler.core.job_config import numbered
from hostler.core.placement.demand import pools_of
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Rollout
from hostler.model.bundle import Job
from hostler.model.launch import JobConfig
from hostler.model.rollout import RolloutPhase


def spec_digest(job: Job) -> str:
    """Return the digest of what a running copy cannot take over in place."""
    return digest(encode((job.launch, job.requirement)))


def is_outdated(fleet: Fleet, bundle: Bundle, job: Job, allocation: Allocation) -> bool:
    """Say whether a place is for another launch or requirement, or in a pool that is none now."""
    node = fleet.nodes.get(allocation.node_id)
    return (
        allocation.launch != job.launch
        or allocation.requirement != job.requirement
        or (node is not None and node.pool not in pools_of(bundle))
    )


def config_of(fleet: Fleet, allocation: Allocation) -> JobConfig | None:
    """Return the configuration that is meant for a copy; `None` when there is none.

    A copy of an outdated launch is about to be replaced and keeps what it was started with: the
    configuration of another version may not be one that it understands.
    """
    bundle = fleet.bundles.get(allocation.bundle_id)
    job = None if bundle is None else bundle.job(allocation.job)
    if bundle is None or job is None or job.config is None:
        return None
    return None if is_outdated(fleet, bundle, job, allocation) else job.config


def note_change(txn: Txn, known: Bundle, desired: Bundle, by: str) -> None:
    """Write down that a bundle was changed, with what it was if running copies must be replaced.

    A change that replaces nothing leaves a rollout that is under way as it is.
    """
    latest = txn.fleet.rollouts.get(known.bundle_id)
    if not _is_replacing(known, desired):
        if latest is not None and latest.is_under_way:
            txn.change(latest, generation=desired.generation)
        return
    # What is only half there is nothing to go back to: the last whole one stays the way back.
    is_half = latest is not None and not latest.is_back and latest.phase is not RolloutPhase.DONE
    former = latest.former if latest is not None and is_half else known
    _begin(txn, desired, former, by, is_back=False)


def turn_back(txn: Txn, rollout: Rollout, by: str, evidence: str) -> None:
    """Desire again what was there before, as a new generation."""
    bundle, former = txn.fleet.bundles[rollout.bundle_id], rollout.former
    if former is None:
        return
    generation = bundle.generation + 1
    restored = txn.put(
        replace(
            former,
            jobs=numbered(former.jobs, bundle, generation),
            generation=generation,
            observed_generation=bundle.observed_generation,
            switched=bundle.switched,
            phase=bundle.phase,
            phase_since_at_ms=bundle.phase_since_at_ms,
        )
    )
    _begin(txn, restored, bundle, by, is_back=True, evidence=evidence)


def _is_replacing(known: Bundle, desired: Bundle) -> bool:
    if not set(pools_of(known)) <= set(pools_of(desired)):
        return True
    jobs = [(known.job(job.name), job) for job in desired.jobs]
    return any(old is not None and spec_digest(old) != spec_digest(new) for old, new in jobs)


def _begin(
    txn: Txn,
    bundle: Bundle,
    former: Bundle | None,
    by: str,
    *,
    is_back: bool,
    evidence: str = "",
) -> None:
    phase = RolloutPhase.ROLLING_BACK if is_back else RolloutPhase.ROLLING
    fresh = Rollout(
        bundle_id=bundle.bundle_id,
        generation=bundle.generation,
        former=former,
        is_back=is_back,
        phase=phase,
        phase_since_at_ms=txn.now_ms,
        begun_at_ms=txn.now_ms,
        begun_by=by,
        progress_at_ms=txn.now_ms,
        evidence=evidence,
    )
    txn.put(fresh)
    txn.emit(
        EventKind.ROLLOUT_BEGUN,
        {"bundle": bundle.bundle_id, "principal": by},
        generation=bundle.generation,
        is_back=is_back,
        evidence=evidence,
    )
