"""What the demo measures, and what each number must be for the demo to have held."""

from __future__ import annotations

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
    recovered_ms: int | None = None
    """From the kill of the primary's node until a new primary was on air."""
    spare_refilled_ms: int | None = None
    """From the same kill until the spare that it took was replaced."""
    server_restart_gap_ms: int | None = None
    """From the kill of the server until it answered again."""
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

    def judge(self, *, is_kept: bool) -> None:
        """Add a sentence for each number that is not what it must be.

        A story that stopped early has said why; one that was to leave things running has no
        number for what is left.
        """
        if not self.did_not_hold:
            left_out = ("leaked_machines", "leaked_processes") if is_kept else ()
            self.did_not_hold += [
                f"{name} was not reached"
                for name, value in msgspec.structs.asdict(self).items()
                if value is None and name not in left_out
            ]
        for name in _ZERO:
            value = getattr(self, name)
            if value:
                self.did_not_hold.append(f"{name} is {value} and must be 0")

    def rows(self) -> list[tuple[str, str, bool]]:
        """Return what to show: name, value with its unit, and whether it held."""
        rows: list[tuple[str, str, bool]] = []
        for name in self.__struct_fields__:
            if name == "did_not_hold":
                continue
            value = getattr(self, name)
            if value is None:
                rows.append((name, "-", False))
            elif name.endswith("_ms"):
                rows.append((name.removesuffix("_ms"), format_duration(value), True))
            else:
                rows.append((name, str(value), name not in _ZERO or value == 0))
        return rows


_ZERO = (
    "segments_lost_backup",
    "primary_restarts_on_broken_version",
    "encoder_restarts_on_server_kill",
    "leases_lost_on_server_kill",
    "nodes_changed_on_server_kill",
    "leaked_machines",
    "leaked_processes",
)
