"""What people want of single jobs: that they run, that they do not, by what they work."""

from __future__ import annotations

from hostler.base.ids import BundleId
from hostler.core.asking import Request
from hostler.model.launch import JobConfig


class StartJob(Request, frozen=True, kw_only=True, tag="start_job"):
    """Start the replicas of a job that are dormant, dropped or broken."""

    bundle_id: BundleId
    job: str


class StopJob(Request, frozen=True, kw_only=True, tag="stop_job"):
    """Stop the replicas of a job, and place none of it until somebody starts it."""

    bundle_id: BundleId
    job: str


class ConfigureJob(Request, frozen=True, kw_only=True, tag="configure_job"):
    """Let one job work by another configuration, the rest of its bundle as it is."""

    bundle_id: BundleId
    job: str
    config: JobConfig | None
    """`None`: by none any more."""
    if_generation: int | None = None
    """Only if the bundle is at this generation."""
