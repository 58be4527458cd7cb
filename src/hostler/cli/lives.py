"""What a replica has been through, in words."""

from __future__ import annotations

from typing import Final

from hostler.cli.output import Cell, Column
from hostler.wire.http import JobConfigProgressView, ReplicaView


def restarts_text(view: ReplicaView) -> Cell:
    """Write how many recoveries count, and for what."""
    causes = ", ".join(f"{count} {cause}" for cause, count in view.restart_causes.items())
    return f"{view.restart_count} ({causes})" if causes else view.restart_count


def moves_to(view: ReplicaView) -> str | None:
    """Write where a replica is being moved, if it is."""
    if view.migrating_to is None:
        return None
    return view.migrating_to or "a second place, which is not found yet"


def config_text(view: JobConfigProgressView) -> str:
    """Write which configuration a copy has, and what is missing to the one that it is to have."""
    told = f"{view.wanted} wanted, {view.written} delivered"
    if view.applied:
        told = f"{told}, {view.applied} applied"
    return f"{told}; not delivered: {view.problem}" if view.problem else told


def _progress(view: ReplicaView) -> JobConfigProgressView:
    """Return how far a copy is; rows are shown only of those that have something to work by."""
    return view.config or JobConfigProgressView(wanted=0, written=0, applied=0, problem="")


CONFIG_COLUMNS: Final[tuple[Column[ReplicaView], ...]] = (
    Column("REPLICA", lambda view: view.replica_id),
    Column("WANTED", lambda view: _progress(view).wanted),
    Column("DELIVERED", lambda view: _progress(view).written),
    Column("APPLIED", lambda view: _progress(view).applied or None),
    Column("PROBLEM", lambda view: _progress(view).problem),
)
