"""What the demo measures, and what each number must be for the demo to have held."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from hostler.base.units import format_duration


class Measures(msgspec.Struct, kw_only=True):
    """The summary; `None` is *not reached*."""

    placed_ms: int | None = None
    """From `apply` until both encoders were on air."""
    lease_acquire_ms: int | None = None
    """From asking for a warm node to holding it, over HTTP and durable."""
    run_ms: int | None = None
    """One command over the leased node, from asking to its exit code."""
    copies_changed_by_short_cut: int | None = None
    cut_off_recovered_ms: int | None = None
    """From pulling the cable of the primary's box until a new primary was on air."""
    copies_at_once_ms: int | None = None
    """For how long the cut-off primary and the new one were both on air, by what they made."""
    recovered_ms: int | None = None
    """From the kill of the primary's node until a new primary was on air."""
    spare_refilled_ms: int | None = None
    """From the same kill until the spare that it took was replaced."""
    left_alone_ms: int | None = None
    """From the first work for a box that refuses all until nothing more is placed there."""
    restarts_for_refusals: int | None = None
    """Restarts on the records of those that were refused."""
    server_restart_gap_ms: int | None = None
    """From the kill of the server until it answered again."""
    nodes_doubted_on_clock_jump: int | None = None
    holds_changed_on_clock_jump: int | None = None
    """Copies, encoders and leases."""
    restarted_all_ms: int | None = None
    """From the kill of the server and all agents until all nodes were heard again."""
    copies_changed_by_restart_of_all: int | None = None
    books_changed_by_restart_of_all: int | None = None
    """Nodes and leases that are not as they were."""
    spot_left_ms: int | None = None
    """From the notice until nothing was left on the machine and the backup on air elsewhere."""
    encoders_on_machine_taken: int | None = None
    """Encoders that were killed with the machine, or had to be recovered for it."""
    drained_ms: int | None = None
    """From `drain` until the node was empty and the replica on air elsewhere."""
    segments_lost_backup: int | None = None
    """Segments that a viewer of the backup has missed in all this."""
    segments_made: int | None = None
    """Segments that the backup has made in all this."""
    backup_moved_ms: int | None = None
    """From draining the backup's node until it was on air elsewhere and nothing was left there."""
    rolled_back_ms: int | None = None
    """From submitting a version that cannot run until the former one was whole again."""
    primary_restarts_on_broken_version: int | None = None
    encoder_restarts_on_server_kill: int | None = None
    leases_lost_on_server_kill: int | None = None
    nodes_changed_on_server_kill: int | None = None
    leaked_machines: int | None = None
    leaked_processes: int | None = None
    total_ms: int | None = None
    did_not_hold: list[str] = []
    """One sentence each; empty when all is well."""

    def judge(self, chapters: Collection[str], *, is_kept: bool) -> None:
        """Add a sentence for each number that is not what it must be.

        A story that stopped early has said why; one that was to leave things running has no
        number for what is left.

        Args:
            chapters: Those that were told; the others have no numbers.
            is_kept: Everything was left running.
        """
        if not self.did_not_hold:
            left_out = _untold(chapters)
            if is_kept:
                left_out |= {"leaked_machines", "leaked_processes"}
            self.did_not_hold += [
                f"{name} was not reached"
                for name, value in msgspec.structs.asdict(self).items()
                if value is None and name not in left_out
            ]
        for name in _ZERO:
            value = getattr(self, name)
            if value:
                self.did_not_hold.append(f"{name} is {value} and must be 0")

    def rows(self, chapters: Collection[str]) -> list[tuple[str, str, bool]]:
        """Return what to show: name, value with its unit, and whether it held."""
        rows: list[tuple[str, str, bool]] = []
        left_out = _untold(chapters) | {"did_not_hold"}
        for name in self.__struct_fields__:
            if name in left_out:
                continue
            value = getattr(self, name)
            if value is None:
                rows.append((name, "-", False))
            elif name.endswith("_ms") and name not in _ZERO:
                rows.append((name.removesuffix("_ms"), format_duration(value), True))
            else:
                rows.append((name, str(value), name not in _ZERO or value == 0))
        return rows


_ZERO: Final = (
    "segments_lost_backup",
    "copies_changed_by_short_cut",
    "copies_at_once_ms",
    "restarts_for_refusals",
    "nodes_doubted_on_clock_jump",
    "holds_changed_on_clock_jump",
    "copies_changed_by_restart_of_all",
    "books_changed_by_restart_of_all",
    "encoders_on_machine_taken",
    "primary_restarts_on_broken_version",
    "encoder_restarts_on_server_kill",
    "leases_lost_on_server_kill",
    "nodes_changed_on_server_kill",
    "leaked_machines",
    "leaked_processes",
)

MEASURED_IN: Final = {
    "lease": ("lease_acquire_ms", "run_ms"),
    "partition": ("copies_changed_by_short_cut", "cut_off_recovered_ms", "copies_at_once_ms"),
    "node-loss": ("recovered_ms", "spare_refilled_ms"),
    "rejection": ("left_alone_ms", "restarts_for_refusals"),
    "server-kill": (
        "server_restart_gap_ms",
        "encoder_restarts_on_server_kill",
        "leases_lost_on_server_kill",
        "nodes_changed_on_server_kill",
    ),
    "clock-jump": ("nodes_doubted_on_clock_jump", "holds_changed_on_clock_jump"),
    "restart-all": (
        "restarted_all_ms",
        "copies_changed_by_restart_of_all",
        "books_changed_by_restart_of_all",
    ),
    "spot-notice": ("spot_left_ms", "encoders_on_machine_taken"),
    "drain": ("drained_ms", "backup_moved_ms"),
    "rollout": ("rolled_back_ms", "primary_restarts_on_broken_version"),
}
"""Which chapter measures what; all else is measured in any case."""


def _untold(chapters: Collection[str]) -> set[str]:
    """Return the names that are measured in none of these chapters."""
    return {
        name for chapter, names in MEASURED_IN.items() if chapter not in chapters for name in names
    }
