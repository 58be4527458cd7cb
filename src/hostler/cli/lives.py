"""What a replica has been through, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.cli.output import Cell

if TYPE_CHECKING:
    from hostler.wire.http import ReplicaView


def restarts_text(view: ReplicaView) -> Cell:
    """Write how many recoveries count, and for what."""
    causes = ", ".join(f"{count} {cause}" for cause, count in view.restart_causes.items())
    return f"{view.restart_count} ({causes})" if causes else view.restart_count


def moves_to(view: ReplicaView) -> str | None:
    """Write where a replica is being moved, if it is."""
    if view.migrating_to is None:
        return None
    return view.migrating_to or "a second place, which is not found yet"
