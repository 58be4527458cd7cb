"""Every request about bundles, their replicas and allocations."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from hostler.client.call import Call, getting, posting, putting, segment
from hostler.wire.documents import BundleDocument, JobConfigDocument
from hostler.wire.http import (
    AllocationView,
    BundleView,
    Page,
    PlanView,
    ReplicaView,
    RolloutView,
    UpcomingPage,
)


def submit_bundle(
    document: BundleDocument,
    *,
    at: int | None = None,
    if_generation: int | None = None,
    key: str | None = None,
) -> Call[BundleView]:
    """Create a bundle, or change what is desired of one.

    `at`: as planned at that revision; `if_generation`: nobody has changed it since.
    """
    return posting("/v1/bundles", BundleView, document, key=key, at=at, if_generation=if_generation)


def plan_bundle(document: BundleDocument) -> Call[PlanView]:
    """Ask what would follow from submitting a bundle; changes nothing."""
    return posting("/v1/plan", PlanView, document, key="")


def bundles(**params: Any) -> Call[Page[BundleView]]:
    """List bundles."""
    return getting("/v1/bundles", Page[BundleView], **params)


def bundle(bundle_id: str) -> Call[BundleView]:
    """Get one bundle."""
    return getting(f"/v1/bundles/{segment(bundle_id)}", BundleView)


def delete_bundle(bundle_id: str) -> Call[BundleView]:
    """Stop everything of a bundle, then forget it."""
    return Call(method="DELETE", path=f"/v1/bundles/{segment(bundle_id)}", answer=BundleView)


def start_job(bundle_id: str, job: str) -> Call[BundleView]:
    """Start the replicas of a job that are dormant, dropped or broken."""
    return posting(f"/v1/bundles/{segment(bundle_id)}/jobs/{segment(job)}/start", BundleView)


def stop_job(bundle_id: str, job: str) -> Call[BundleView]:
    """Stop the replicas of a job until somebody starts it."""
    return posting(f"/v1/bundles/{segment(bundle_id)}/jobs/{segment(job)}/stop", BundleView)


def configure_job(
    bundle_id: str,
    job: str,
    document: JobConfigDocument,
    *,
    if_generation: int | None = None,
) -> Call[BundleView]:
    """Let a job work by another configuration, the rest of its bundle as it is."""
    path = f"/v1/bundles/{segment(bundle_id)}/jobs/{segment(job)}/config"
    return putting(path, BundleView, document, if_generation=if_generation)


def reset_bundle(bundle_id: str) -> Call[BundleView]:
    """Forget the failures of a bundle's replicas, and try again what was given up."""
    return posting(f"/v1/bundles/{segment(bundle_id)}/reset", BundleView)


def reset_replica(replica_id: str) -> Call[ReplicaView]:
    """The same of one replica."""
    return posting(f"/v1/replicas/{quote(replica_id)}/reset", ReplicaView)


def rollout(bundle_id: str) -> Call[RolloutView]:
    """Get the latest rollout of a bundle."""
    return getting(f"/v1/bundles/{segment(bundle_id)}/rollout", RolloutView)


def steer_rollout(bundle_id: str, steering: str) -> Call[RolloutView]:
    """Pause a rollout, let it go on (`resume`), or turn it back (`undo`)."""
    return posting(f"/v1/bundles/{segment(bundle_id)}/rollout/{segment(steering)}", RolloutView)


def upcoming(**params: Any) -> Call[UpcomingPage]:
    """List the next starts and stops of all timetables."""
    return getting("/v1/upcoming", UpcomingPage, **params)


def replicas(**params: Any) -> Call[Page[ReplicaView]]:
    """List replicas."""
    return getting("/v1/replicas", Page[ReplicaView], **params)


def replica(replica_id: str) -> Call[ReplicaView]:
    """Get one replica by its id, `bundle/job/0`."""
    return getting(f"/v1/replicas/{quote(replica_id)}", ReplicaView)


def allocations(**params: Any) -> Call[Page[AllocationView]]:
    """List allocations."""
    return getting("/v1/allocations", Page[AllocationView], **params)


def allocation(allocation_id: str) -> Call[AllocationView]:
    """Get one allocation."""
    return getting(f"/v1/allocations/{segment(allocation_id)}", AllocationView)
