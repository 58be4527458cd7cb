"""Desired: whether a replica is to have a place now, and if not, why not.

One answer for everybody who asks: the operator's last word, then the start mode, then the
timetable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.model import Bundle, Replica
from hostler.model.bundle import BundlePhase, Job
from hostler.model.reason import Reason

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


def why_unwanted(fleet: Fleet, bundle: Bundle, job: Job, replica: Replica | None) -> Reason | None:
    """Say why a replica of a job is not to have a place now, or `None` if it is."""
    if bundle.phase is not BundlePhase.ACTIVE:
        return Reason.STOPPED_BY_OPERATOR
    word = bundle.switched.get(job.name)
    if word is not None:
        return None if word else Reason.STOPPED_BY_OPERATOR
    if job.is_dormant:
        return None if replica is not None and replica.is_kept else Reason.DORMANT
    if bundle.timetable is None:
        return None
    shift = fleet.shifts.get(bundle.bundle_id)
    return None if shift is not None and shift.is_on else Reason.OUTSIDE_TIMETABLE


def why_not_its_turn(fleet: Fleet, replica: Replica) -> Reason | None:
    """The same of a replica, found by its record alone; one of no job any more is unwanted."""
    bundle = fleet.bundles.get(replica.bundle_id)
    job = None if bundle is None else bundle.job(replica.job)
    if bundle is None or job is None:
        return Reason.STOPPED_BY_OPERATOR
    return why_unwanted(fleet, bundle, job, replica)
