"""Maintainers: they have machines worked on at times that they name, and change their minds."""

from __future__ import annotations

from hostler.core.fleet import Fleet
from hostler.core.maintenance_inputs import AddMaintenance, RemoveMaintenance
from hostler.model.maintenance import MaintenancePlan
from hostler.model.node import NodePhase
from hostler.model.timetable import Timetable
from hostler.sim.client import Client
from hostler.sim.configuration import UTC
from hostler.sim.scenario import PlanMaintenance
from hostler.sim.server import Server
from hostler.sim.workloads.rhythm import keep_wanting
from hostler.sim.workloads.wishes import RACK, RACKS


class Maintainers:
    """People who add maintenances, beside what is configured, and remove them again."""

    def __init__(
        self, client: Client, server: Server, plan: PlanMaintenance, pools: tuple[str, ...]
    ) -> None:
        self._client = client
        self._server = server
        self._plan = plan
        self._pools = pools
        self._rng = client.world.stream("workload", "maintenance")
        self._count = 0

    def begin(self) -> None:
        """Begin to plan."""
        keep_wanting(self._client.world, self._rng, self._plan.per_hour, self._act)

    def _act(self) -> None:
        self._server.read(self._pick)

    def _pick(self, fleet: Fleet) -> None:
        names = [each.name for each in fleet.maintenances.in_order() if each.added is not None]
        if names and self._rng.chance(500_000):
            self._remove(self._rng.choice(names))
        else:
            self._add(fleet)

    def _remove(self, name: str) -> None:
        self._client.world.probe("operator.removed_maintenance")
        self._client.ask(
            lambda request_id: RemoveMaintenance(
                request_id=request_id, principal="operator", maintenance_name=name
            )
        )

    def _add(self, fleet: Fleet) -> None:
        rng, plan = self._rng, self._plan
        self._count += 1
        from_at_ms = self._client.world.now_ms + rng.between(*plan.begin_ms)
        timetable = Timetable(
            time_zone=UTC.name,
            from_at_ms=from_at_ms,
            to_at_ms=from_at_ms + rng.between(*plan.lasts_ms),
        )
        ready = [n.node_id for n in fleet.nodes.in_order() if n.phase is NodePhase.READY]
        choice = rng.below(4)
        asked = MaintenancePlan(
            name=f"works{self._count}",
            pools=(rng.choice(self._pools),) if choice == 0 or not ready else (),
            node_ids=(rng.choice(ready),) if choice and ready else (),
            labels={RACK: rng.choice(RACKS)} if choice == 1 else {},
            timetable=timetable,
            lead_ms=rng.between(*plan.lead_ms),
            is_forced=rng.chance(500_000),
            reason="made up",
        )
        self._client.world.probe("operator.added_maintenance")
        self._client.ask(
            lambda request_id: AddMaintenance(
                request_id=request_id, principal="operator", plan=asked, time_zones=(UTC,)
            )
        )
