"""A machine: a disk, a clock, supervisors with their jobs, leased commands, and an agent.

The agent may crash and come back while jobs go on; when the machine dies, everything on it dies
with it. A machine that the operator owns boots again and finds its disk as it left it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hostler.agent.core.checks import FOLDER as READY_CHECK
from hostler.agent.core.inputs import (
    AllocationKey,
    FoundAllocation,
    LeaseKey,
    ProcessView,
    Started,
)
from hostler.sim.agent import AgentProcess
from hostler.sim.supervisor import Supervisor
from hostler.sim.truth import LeasedProcess, Truth
from hostler.sim.world import World
from hostler.wire.agent import StartAllocation
from hostler.wire.work import Capability, Inventory

if TYPE_CHECKING:
    from hostler.sim.link import Gateway
    from hostler.sim.network import Network


class MachinePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How machines and what runs on them behave while faults are on. Chances are in a million."""

    start_fails_ppm: int = 0
    exits_ppm: int = 0
    """A job ends by itself."""
    exits_after_ms: tuple[int, int] = (1_000, 600_000)
    warm_after_ms: tuple[int, int] = (50, 3_000)
    never_ready_ppm: int = 0
    ignores_stop_ppm: int = 0
    supervisor_fails_ppm: int = 0
    """No supervisor can be started."""
    agent_returns_ms: tuple[int, int] = (500, 15_000)
    """From an agent's crash until it is started again."""
    strays_ppm: int = 0
    """A leased command outlives the agent that started it, until the next life clears it away."""
    check_fails_ppm: int = 0
    """One try of a pool's ready check does not pass."""


CALM = MachinePlan(agent_returns_ms=(500, 2_000))


class Enrolment(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine is told at birth about whom to become."""

    node_id: str | None = None
    pool: str = ""
    tier: str = ""
    has_agent: bool = True
    """False: what acts for it is the server's deputy, which starts no jobs."""


class Folder(msgspec.Struct):
    """What is on the disk about one allocation."""

    start: StartAllocation
    process: ProcessView | None = None
    was_ready: bool = False
    config_written: int = 0
    role: str = ""


class Disk(msgspec.Struct):
    """What survives a reboot."""

    node_id: str | None = None
    """Set once joined, with the credential."""
    incarnation: int = 0
    authority_until_at_ms: int | None = None
    folder_by_key: dict[AllocationKey, Folder] = {}
    lease_keys: dict[LeaseKey, None] = {}


class Machine:
    """One machine, whoever owns it.

    Attributes:
        is_on: It runs. A machine that is off may still be billed.
        supervisor_by_key: Supervisors of this uptime, ended ones too.
        leased_by_request: Leased commands that run.
    """

    def __init__(
        self,
        world: World,
        network: Network,
        gateway: Gateway,
        truth: Truth,
        *,
        machine_id: str,
        enrolment: Enrolment,
        capacity: int,
        plan: MachinePlan,
    ) -> None:
        self.world = world
        self.network = network
        self.gateway = gateway
        self.truth = truth
        self.machine_id = machine_id
        self.enrolment = enrolment
        self.plan = plan
        self.rng = world.stream("machine", machine_id)
        self.inventory = Inventory(
            capacity=capacity,
            cores_milli=capacity * 1_000,
            memory_bytes=capacity * 2**30,
            capabilities=[Capability(name="input", count=2)],
            devices=[],
        )
        self.disk = Disk()
        self.is_on = False
        self.boot_count = 0
        self.agent: AgentProcess | None = None
        self.supervisor_by_key: dict[AllocationKey, Supervisor] = {}
        self.leased_by_request: dict[str, tuple[LeaseKey, LeasedProcess]] = {}
        self.rejects_until_ms = 0
        self._clock_offset_ms = self.rng.between(-3_600_000, 3_600_000)
        self._pid = 100
        self._is_fence_watched = False

    def clock_ms(self) -> int:
        """Return the machine's own time, which is nobody else's."""
        return self.world.now_ms + self._clock_offset_ms

    @property
    def rejects_starts(self) -> bool:
        """Its agent refuses all that it is to start, as where a device has gone."""
        return self.world.now_ms < self.rejects_until_ms

    def next_pid(self) -> int:
        """Return a process id."""
        self._pid += 1
        return self._pid

    # -- power -------------------------------------------------------------------------------

    def boot(self) -> None:
        """Begin an uptime: nothing runs but the agent, and soon that."""
        if self.is_on:
            return
        self.is_on = True
        self.boot_count += 1
        self.world.log(f"machine {self.machine_id} boots")
        self._start_agent_in(self.rng.between(50, 1_000))

    def die(self) -> None:
        """Lose power: everything that runs here is gone at this instant."""
        if not self.is_on:
            return
        self.is_on = False
        self.world.log(f"machine {self.machine_id} dies")
        if self.agent is not None:
            self.agent.die()
            self.agent = None
        for supervisor in self.supervisor_by_key.values():
            supervisor.die()
        self.supervisor_by_key.clear()
        for request_id in list(self.leased_by_request):
            self.end_leased(request_id)

    def crash_agent(self) -> None:
        """Kill -9 the agent; its supervisors go on."""
        if self.agent is None or not self.is_on:
            return
        self.agent.die()
        self.agent = None
        self.world.probe("agent.crashed")
        self.world.log(f"machine {self.machine_id} agent killed")
        for request_id in list(self.leased_by_request):
            if self.rng.chance(self.plan.strays_ppm):
                self.world.probe("agent.left_a_stray")
            else:
                self.end_leased(request_id)
        self._start_agent_in(self.rng.between(*self.plan.agent_returns_ms))

    def agent_exited(self, reason: str) -> None:
        """Note that the agent has ended by itself; whoever started it does not start it again."""
        self.world.log(f"agent {self.machine_id} exits: {reason}")
        if self.agent is not None:
            self.agent.die()
            self.agent = None

    def _start_agent_in(self, delay_ms: int) -> None:
        self.world.after(delay_ms, self._start_agent, self.boot_count)

    def _start_agent(self, boot_count: int) -> None:
        if self.is_on and self.boot_count == boot_count and self.agent is None:
            self.disk.incarnation += 1
            self.agent = AgentProcess(self, self.disk.incarnation)
            self.agent.begin(self.found())

    def found(self) -> Started:
        """Return what a new life of the agent finds here."""
        found = []
        for key, folder in sorted(self.disk.folder_by_key.items()):
            supervisor = self.supervisor_by_key.get(key)
            found.append(
                FoundAllocation(
                    start=folder.start,
                    process=folder.process,
                    is_supervised=supervisor is not None and supervisor.is_alive,
                    was_ready=folder.was_ready,
                    config_written=folder.config_written,
                )
            )
        return Started(
            inventory=self.inventory,
            found=found,
            found_leases=sorted(self.disk.lease_keys),
            authority_until_at_ms=self.disk.authority_until_at_ms,
        )

    # -- jobs --------------------------------------------------------------------------------

    def start_supervisor(self, key: AllocationKey, start: StartAllocation) -> bool:
        """Write a start down and start its supervisor, unless it is or was there already."""
        folder = self.disk.folder_by_key.get(key)
        if folder is None:
            number = 0 if start.config is None else start.config.number
            folder = self.disk.folder_by_key[key] = Folder(
                start, config_written=number, role=start.launch.identity.role
            )
        supervisor = self.supervisor_by_key.get(key)
        if supervisor is not None or folder.process is not None:
            return True
        if self.rng.chance(self.plan.supervisor_fails_ppm):
            self.world.probe("agent.supervisor_failed")
            self.unmake_start(key)
            return False
        self.supervisor_by_key[key] = Supervisor(self, start, self._state_written)
        return True

    def _state_written(self, supervisor: Supervisor) -> None:
        folder = self.disk.folder_by_key.get(supervisor.key)
        if folder is not None:
            folder.process = supervisor.view
        if self.agent is not None:
            self.agent.supervisor_wrote(supervisor.key, supervisor.view)

    def kill_supervisor(self, key: AllocationKey) -> None:
        """Kill -9 a supervisor and its job."""
        supervisor = self.supervisor_by_key.get(key)
        if supervisor is not None and supervisor.is_alive:
            supervisor.die()
            self.world.log(f"machine {self.machine_id} supervisor of {key.allocation_id} killed")
            if self.agent is not None:
                self.agent.supervisor_died(key)

    def unmake_start(self, key: AllocationKey) -> None:
        """Let the agent's next life not find a start that was given up before it told anything."""
        folder = self.disk.folder_by_key.get(key)
        if folder is not None and folder.process is None:
            self.forget(key)

    def configure(self, key: AllocationKey, number: int) -> None:
        """Put a configuration into the folder of an allocation; its job sees it in a while."""
        folder, supervisor = self.disk.folder_by_key.get(key), self.supervisor_by_key.get(key)
        if folder is not None:
            folder.config_written = number
        if supervisor is not None:
            supervisor.configure(number)

    def assign_role(self, key: AllocationKey, role: str) -> None:
        """Put another role into the folder of an allocation."""
        folder = self.disk.folder_by_key.get(key)
        if folder is not None:
            folder.role = role
            self.world.probe("job.role_changed")

    def forget(self, key: AllocationKey) -> None:
        """Remove the folder of an allocation that has ended."""
        self.disk.folder_by_key.pop(key, None)
        self.supervisor_by_key.pop(key, None)

    def remember_authority(self, until_at_ms: int) -> None:
        """Note until when the work here is authorised; supervisors keep to it."""
        self.disk.authority_until_at_ms = until_at_ms
        if not self._is_fence_watched:
            self._is_fence_watched = True
            self._watch_fence()

    def _watch_fence(self) -> None:
        until_at_ms = self.disk.authority_until_at_ms or 0
        left_ms = until_at_ms - self.clock_ms()
        if left_ms > 0:
            # A supervisor looks at the file about once a second.
            self.world.after(left_ms + self.rng.below(1_000), self._watch_fence)
            return
        self._is_fence_watched = False
        for _, supervisor in sorted(self.supervisor_by_key.items()):
            supervisor.fence()

    # -- leased commands ---------------------------------------------------------------------

    def begin_leased(self, request_id: str, key: LeaseKey) -> None:
        """Run a command under a lease, or a ready check, which is nobody's."""
        process = LeasedProcess(key.lease_id, key.epoch, request_id, self.machine_id)
        self.leased_by_request[request_id] = (key, process)
        if key.lease_id == READY_CHECK:
            self.world.probe("machine.ready_check")
        else:
            self.truth.leased_began(process)

    def end_leased(self, request_id: str) -> bool:
        """End a command, if it still runs."""
        found = self.leased_by_request.pop(request_id, None)
        if found is not None and found[0].lease_id != READY_CHECK:
            self.truth.leased_ended(found[1])
        return found is not None

    def clear_lease(self, key: LeaseKey) -> None:
        """Kill whatever runs under a lease and remove its folder."""
        for request_id, (owner, _) in list(self.leased_by_request.items()):
            if owner == key:
                self.end_leased(request_id)
        self.disk.lease_keys.pop(key, None)
