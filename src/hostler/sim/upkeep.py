"""Upkeep: what only time can show: leaks against the provider's bill, and history without bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hostler.core.fleet import Fleet
from hostler.model.node import NodePhase
from hostler.model.settings import Settings
from hostler.sim.ceilings import check_bill
from hostler.sim.world import Violation

if TYPE_CHECKING:
    from hostler.sim.cloud import CloudMachine
    from hostler.sim.history import History

LOOK_EVERY_MS: Final = 5_000

_SLACK_MS: Final = 300_000
"""Beyond the grace and some lists: calls that fail or get lost are made again after back-off."""

_HISTORY_SLACK_MS: Final = 120_000
"""How long after its time a record of what is over may still be there: steps come when something
happens, and at the latest when the record's own timer rings."""

_PRUNE_SLACK_COUNT: Final = 20_000
"""History that may pile up between two prunings."""


class Upkeep:
    """Looks at the whole world every few seconds."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._world = history.world
        self._uncovered_ms: dict[str, int] = {}
        """How long a machine was without a record while there was a server to notice it."""

    def begin(self) -> None:
        """Begin to look."""
        self._world.after(LOOK_EVERY_MS, self._look)

    def _look(self) -> None:
        self._world.after(LOOK_EVERY_MS, self._look)
        self._history.server.read(self._check)

    def _check(self, fleet: Fleet) -> None:
        settings = fleet.settings
        if settings is None:
            return
        existing = self._history.cloud.existing()
        check_bill(fleet, existing, self._history.configurers.ceiling_max)
        for machine in existing:
            self._check_covered(fleet, settings, machine)
        self._check_history(fleet, settings)

    def _check_covered(self, fleet: Fleet, settings: Settings, machine: CloudMachine) -> None:
        node = fleet.nodes.get(machine.node_id)
        if node is not None and node.phase is not NodePhase.RETIRED:
            self._uncovered_ms.pop(machine.machine_id, None)
            return
        if not self._uncovered_ms.get(machine.machine_id):
            self._world.probe("cloud.orphan")
        uncovered_ms = self._uncovered_ms.get(machine.machine_id, 0) + LOOK_EVERY_MS
        self._uncovered_ms[machine.machine_id] = uncovered_ms
        if uncovered_ms > settings.orphan_grace_ms + 4 * settings.list_every_ms + _SLACK_MS:
            raise Violation(
                "machine_leaked",
                "a machine is billed and no record covers it",
                machine=machine.machine_id,
                node=machine.node_id,
                uncovered_ms=uncovered_ms,
            )

    def _check_history(self, fleet: Fleet, settings: Settings) -> None:
        rows = self._history.disk.rows
        keep = settings.retention
        for name, count, count_max in (
            ("events", rows.event_count, keep.event_count_max),
            ("journal", rows.journal_count, keep.journal_count_max),
            ("lives", rows.life_count, keep.lives_count_max),
        ):
            if count > count_max + _PRUNE_SLACK_COUNT:
                raise Violation("history_unbounded", "history is not cut back", of=name)
        too_old_ms = fleet.now_ms - keep.ended_ms - _HISTORY_SLACK_MS
        for allocation in fleet.allocations.rows.values():
            if not allocation.is_live and allocation.phase_since_at_ms < too_old_ms:
                raise Violation("history_kept", "ended long ago", key=allocation.key)
        for lease in fleet.leases.rows.values():
            is_over = lease.phase.value in ("settled", "refused")
            if is_over and lease.phase_since_at_ms < too_old_ms:
                raise Violation("history_kept", "over long ago", key=lease.key)
        for node in fleet.nodes.rows.values():
            if node.phase is NodePhase.RETIRED and node.phase_since_at_ms < too_old_ms:
                raise Violation("history_kept", "retired long ago", key=node.key)
