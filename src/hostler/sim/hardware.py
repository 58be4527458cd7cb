"""Hardware: machines as they come into being, boot, and die, whoever owns them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.sim.machine import Enrolment, Machine, MachinePlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from hostler.sim.cloud import CloudMachine
    from hostler.sim.link import Gateway
    from hostler.sim.network import Network
    from hostler.sim.scenario import FleetPlan
    from hostler.sim.truth import Truth
    from hostler.sim.world import World


class Hardware:
    """Every machine that there is or was.

    Attributes:
        machines: By machine id; those that are gone too.
        plan: How machines behave at present.
        gateway: Where agents find the server; set before the first machine boots.
    """

    def __init__(
        self, world: World, network: Network, truth: Truth, fleet: FleetPlan, plan: MachinePlan
    ) -> None:
        self._world = world
        self._network = network
        self._truth = truth
        self.plan = plan
        self.machines: dict[str, Machine] = {}
        self.gateway: Gateway
        self.boots_in: Callable[[CloudMachine], int | None] | None = None
        """In how long a machine boots instead of when it would; `None`: never."""
        self._capacity = {
            (pool.name, tier.name): tier.capacity for pool in fleet.pools for tier in pool.tiers
        }
        self._agentless = {
            (pool.name, tier.name): None
            for pool in fleet.pools
            for tier in pool.tiers
            if not tier.has_agents
        }
        self._slot_count = {pool.name: pool.slot_count for pool in fleet.pools}
        self._fleet = fleet
        self._own: list[Machine] = []

    def begin(self) -> None:
        """Switch on what the operator owns."""
        for pool in self._fleet.pools:
            for tier in pool.tiers:
                for number in range(tier.machine_count):
                    enrolment = Enrolment(pool=pool.name, tier=tier.name)
                    machine_id = f"{pool.name}-{tier.name}-{number}"
                    machine = self._machine(machine_id, enrolment, tier.capacity)
                    self._own.append(machine)
                    machine.boot()

    def own(self) -> list[Machine]:
        """Return the machines that the operator owns."""
        return self._own

    def running(self) -> list[Machine]:
        """Return the machines that are on."""
        return [machine for machine in self.machines.values() if machine.is_on]

    def set_plan(self, plan: MachinePlan) -> None:
        """Let all machines, and those to come, behave so."""
        self.plan = plan
        for machine in self.machines.values():
            machine.plan = plan

    def machine_born(self, machine: CloudMachine, *, boots_in_ms: int | None) -> None:
        """Make a machine out of what the provider gives."""
        times = 2 if machine.offer == "large" else 1
        capacity = times * self._capacity[(machine.pool, machine.tier)]
        enrolment = Enrolment(
            node_id=machine.node_id,
            pool=machine.pool,
            tier=machine.tier,
            has_agent=(machine.pool, machine.tier) not in self._agentless,
        )
        made = self._machine(machine.machine_id, enrolment, capacity)
        if self.boots_in is not None:
            boots_in_ms = self.boots_in(machine)
        if boots_in_ms is not None:
            self._world.after(boots_in_ms, self._boot, machine, made)

    def _boot(self, machine: CloudMachine, made: Machine) -> None:
        if machine.exists:
            made.boot()

    def machine_gone(self, machine: CloudMachine) -> None:
        """End everything on a machine that is no more."""
        self.machines.pop(machine.machine_id).die()

    def _machine(self, machine_id: str, enrolment: Enrolment, capacity: int) -> Machine:
        machine = Machine(
            self._world,
            self._network,
            self.gateway,
            self._truth,
            machine_id=machine_id,
            enrolment=enrolment,
            capacity=capacity,
            plan=self.plan,
        )
        self.machines[machine_id] = machine
        self._truth.slot_count_by_machine[machine_id] = self._slot_count[enrolment.pool]
        return machine
