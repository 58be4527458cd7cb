"""A history: one seed's world put together, run through its phases, and judged.

First faults and work, while checkers watch that nothing bad happens. Then the world is healed and
nobody asks for more: within the time that the scenario gives, everything desired must be so, and
must stay so for a while.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Final

import msgspec

from hostler.base.errors import Defect, HostlerError
from hostler.core.fleet import Fleet
from hostler.sim import cloud, convergence, disk, machine, network
from hostler.sim.checkers import Checkers
from hostler.sim.client import Client
from hostler.sim.cloud import Cloud
from hostler.sim.disk import Disk
from hostler.sim.faults import let_go_wrong
from hostler.sim.hardware import Hardware
from hostler.sim.network import Network
from hostler.sim.promises import Promises
from hostler.sim.replay import replay
from hostler.sim.scenario import (
    AcquireLeases,
    ChangeConfiguration,
    OperateNodes,
    PlanMaintenance,
    RestNowAndThen,
    Scenario,
    SubmitBundles,
)
from hostler.sim.server import Server, ServerPlan
from hostler.sim.truth import Truth
from hostler.sim.upkeep import Upkeep
from hostler.sim.workloads.bundles import Submitters
from hostler.sim.workloads.leases import Lessees
from hostler.sim.workloads.maintainers import Maintainers
from hostler.sim.workloads.operators import Configurers, NodeOperators
from hostler.sim.workloads.rhythm import keep_doing
from hostler.sim.world import Violation, World

LOOK_EVERY_MS: Final = 5_000
"""How often convergence is looked for."""

STAYS_MS: Final = 60_000
"""How long the world must stay as desired once it is."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one history."""

    seed: int
    title: str
    digest: str
    event_count: int
    step_count: int
    elapsed_ms: int
    probes: dict[str, int]
    converged_after_ms: int | None = None
    violation: str = ""
    """Empty when all is well."""
    story: str = ""
    """Where the violation was found, for people."""


class History:
    """One world and everybody in it."""

    def __init__(
        self, scenario: Scenario, seed: int, *, tell: Callable[[str], None] | None = None
    ) -> None:
        self.scenario = scenario
        self.world = World(seed, tell=tell)
        world = self.world
        self.truth = Truth(world)
        self.network = Network(world, scenario.network)
        self.hardware = Hardware(world, self.network, self.truth, scenario.fleet, scenario.machines)
        self.cloud = Cloud(world, scenario.cloud, self.hardware)
        self.disk = Disk(world, scenario.disk)
        self.checkers = Checkers(world, self.disk, Promises())
        self.server = Server(world, self.disk, self.cloud, self.checkers, scenario.server)
        self.hardware.gateway = self.server
        self.client = Client(world, self.network, self.server)
        changes = [each for each in scenario.workload if isinstance(each, ChangeConfiguration)]
        self.configurers = Configurers(self.client, scenario.fleet, changes[0] if changes else None)
        self.problems: list[str] = ["nobody has looked yet"]

    def run(self, *, is_replayed: bool = True) -> Outcome:
        """Let it happen, run its journal again if that is wanted, and say what became of it."""
        violation, story, converged_after_ms = "", "", None
        try:
            self.act()
            converged_after_ms = self._converge(self.scenario.phases.liveness_ms)
            if is_replayed:
                replay(self.disk.lives)
        except HostlerError as error:
            violation, story = _told(error), "".join(traceback.format_exception(error))
        except Exception as error:  # noqa: BLE001 - whatever escapes belongs to the seed's story
            violation = f"{type(error).__name__}: {error}"
            story = "".join(traceback.format_exception(error))
        world = self.world
        return Outcome(
            seed=world.seed,
            title=self.scenario.title,
            digest=world.digest(),
            event_count=world.event_count,
            step_count=self.checkers.step_count,
            elapsed_ms=world.elapsed_ms,
            probes=dict(sorted(world.probes.items())),
            converged_after_ms=converged_after_ms,
            violation=violation,
            story=story,
        )

    def act(self) -> None:
        """Let faults and work begin and end."""
        self._begin()
        self.run_for(self.scenario.phases.safety_ms)
        self.heal()

    def run_for(self, duration_ms: int) -> None:
        """Let time pass."""
        self.world.run(self.world.now_ms + duration_ms, event_count_max=self.scenario.ticks_max)

    def _begin(self) -> None:
        self.server.start()
        self.configurers.begin()
        self.world.after(2_000, self.hardware.begin)
        self._watch_over()
        lease_ms_by_pool = {pool.name: pool.lease_ms for pool in self.scenario.fleet.pools}
        pools = tuple(lease_ms_by_pool)
        for workload in self.scenario.workload:
            match workload:
                case SubmitBundles():
                    has_mesh = any(pool.has_service for pool in self.scenario.fleet.pools)
                    Submitters(self.client, self.truth, workload, pools, has_mesh=has_mesh).begin()
                case AcquireLeases():
                    Lessees(self.client, workload, lease_ms_by_pool).begin()
                case OperateNodes():
                    NodeOperators(self.client, self.server, workload).begin()
                case PlanMaintenance():
                    Maintainers(self.client, self.server, workload, pools).begin()
                case RestNowAndThen():
                    self._rest_now_and_then(workload)
                case ChangeConfiguration():
                    pass  # the configurers have it
        for fault in self.scenario.fault:
            let_go_wrong(self, fault)

    def _watch_over(self) -> None:
        Upkeep(self).begin()

    def _rest_now_and_then(self, plan: RestNowAndThen) -> None:
        world = self.world
        rng = world.stream("workload", "rest")

        def rest() -> None:
            world.probe("people.rested")
            world.rests_until_ms = world.now_ms + rng.between(*plan.rest_ms)

        keep_doing(world, rng, plan.per_hour, rest)

    def heal(self) -> None:
        """End all faults. What is under way goes on, as does what has been asked for."""
        world = self.world
        world.log("healed")
        world.is_calm = True
        self.network.plan = network.CALM
        self.cloud.plan = cloud.CALM
        self.disk.plan = disk.CALM
        self.server.plan = ServerPlan(down_ms=(500, 2_000))
        self.server.doomed_at = None
        self.hardware.set_plan(machine.CALM)
        self.network.heal_all()
        for machine_ in self.hardware.running():
            machine_.rejects_until_ms = 0
        for own in self.hardware.own():
            own.boot()
        self.configurers.settle()
        world.after(30_000, self.configurers.settle)

    def _converge(self, liveness_ms: int) -> int:
        begun_at_ms = self.world.now_ms
        since_at_ms: int | None = None
        while self.world.now_ms < begun_at_ms + liveness_ms:
            self.run_for(LOOK_EVERY_MS)
            self.problems = ["there is no server"]
            self.server.read(self._look)
            if self.problems:
                since_at_ms = None
            elif since_at_ms is None:
                since_at_ms = self.world.now_ms
                self.world.log("converged")
            elif self.world.now_ms >= since_at_ms + STAYS_MS:
                return since_at_ms - begun_at_ms
        raise Violation(
            "not_converged",
            "the healed world does not become as desired",
            problems="; ".join(self.problems[:8]),
        )

    def _look(self, fleet: Fleet) -> None:
        self.problems = convergence.problems(self, fleet)


def _told(error: HostlerError) -> str:
    kind = "defect" if isinstance(error, Defect) else "violation"
    return f"{kind} {error.code}: {error}"
