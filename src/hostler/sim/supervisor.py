"""A supervisor and its job: they outlive the agent, and die with the machine.

What is imitated: the job begins a moment after its supervisor, may fail to start, ends by itself
when the seed says so, takes some time to obey a stop or ignores it until it is killed; and the
supervisor fences it by itself when the authority that it was told of has run out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hostler.agent.core.inputs import AllocationKey, ProcessEnd, ProcessView
from hostler.sim.truth import JobProcess
from hostler.wire.agent import StartAllocation
from hostler.wire.work import SdNotifyReadiness

if TYPE_CHECKING:
    from hostler.sim.machine import Machine


BROKEN_ARGUMENT = "--broken"
"""In the arguments of a version that crashes as soon as it runs."""


class Supervisor:
    """One supervisor process.

    Attributes:
        view: What its state file says; outlives it.
        is_alive: The process is there.
    """

    def __init__(
        self, machine: Machine, start: StartAllocation, tell: Callable[[Supervisor], None]
    ) -> None:
        self.machine = machine
        self.key = AllocationKey(start.allocation_id, start.epoch)
        self.start = start
        self.view = ProcessView()
        self.is_alive = True
        self.is_warm = False
        """The job answers probes."""
        self._tell = tell
        self._job: JobProcess | None = None
        self._is_fenced = False
        self._kill_at_ms: int | None = None
        rng, world = machine.rng, machine.world
        world.after(rng.between(2, 150), self._begin)

    @property
    def is_running(self) -> bool:
        """The job runs."""
        return self._job is not None

    def _begin(self) -> None:
        if not self.is_alive or self.view.end is not None:
            return
        machine, plan = self.machine, self.machine.plan
        if self.view.is_stopping:
            self._end(signal="SIGTERM")
            return
        if machine.rng.chance(plan.start_fails_ppm):
            machine.world.probe("job.start_failed")
            self._end(start_error="made up")
            return
        identity = self.start.launch.identity
        self._job = JobProcess(
            identity.replica_id, self.start.allocation_id, self.start.epoch, machine.machine_id
        )
        machine.truth.job_began(self._job)
        self.view = ProcessView(pid=machine.next_pid(), started_at_ms=machine.clock_ms())
        self._tell(self)
        if self.start.config is not None:
            self.configure(self.start.config.number)
        world = machine.world
        if BROKEN_ARGUMENT in self.start.launch.argv:
            world.after(1_000, self._exit_by_itself)
        elif machine.rng.chance(plan.exits_ppm):
            world.after(machine.rng.between(*plan.exits_after_ms), self._exit_by_itself)
        if not machine.rng.chance(plan.never_ready_ppm):
            world.after(machine.rng.between(*plan.warm_after_ms), self._warm)

    def configure(self, number: int) -> None:
        """Let the job see a configuration, and say after a while that it works by it."""
        self.machine.world.after(2 * (number % 7) + 1, self._apply, number)

    def _apply(self, number: int) -> None:
        if self.is_running:
            self.machine.world.probe("job.configured")
            self._change(config_applied=max(number, self.view.config_applied))

    def _warm(self) -> None:
        if self.is_running:
            self.is_warm = True
            if isinstance(self.start.launch.readiness, SdNotifyReadiness):
                self._change(is_ready=True)

    def _exit_by_itself(self) -> None:
        if self.is_running:
            self.machine.world.probe("job.exited")
            self._end(exit_code=self.machine.rng.below(3))

    def stop(self, grace_ms: int, *, is_fence: bool = False) -> None:
        """Send the stop signal, and kill when the grace is over."""
        if not self.is_alive or self.view.end is not None:
            return
        machine = self.machine
        self._is_fenced |= is_fence and not self.view.is_stopping
        if not self.view.is_stopping:
            self._change(is_stopping=True)
            if self.is_running and not machine.rng.chance(machine.plan.ignores_stop_ppm):
                machine.world.after(machine.rng.between(5, 4_000), self._obey)
        kill_at_ms = machine.world.now_ms + grace_ms
        if self._kill_at_ms is None or kill_at_ms < self._kill_at_ms:
            self._kill_at_ms = kill_at_ms
            machine.world.after(grace_ms, self._obey)

    def _obey(self) -> None:
        if self.is_running:
            now_ms = self.machine.world.now_ms
            is_killed = self._kill_at_ms is not None and now_ms >= self._kill_at_ms
            self._end(signal="SIGKILL" if is_killed else "SIGTERM")

    def kill(self) -> None:
        """Kill the job now."""
        if self.is_alive and self.view.end is None:
            self._end(signal="SIGKILL")

    def fence(self) -> None:
        """Stop the job because nobody has renewed the authority to run it."""
        launch = self.start.launch
        if launch.disconnect == "stop" and self.is_alive and self.view.end is None:
            self.machine.world.probe("supervisor.fenced")
            self.stop(launch.stop_grace_ms, is_fence=True)

    def die(self) -> None:
        """End without a word, and the job with it."""
        self.is_alive = False
        self._drop_job()

    def _end(
        self,
        *,
        exit_code: int | None = None,
        signal: str | None = None,
        start_error: str | None = None,
    ) -> None:
        self._drop_job()
        end = ProcessEnd(
            ended_at_ms=self.machine.clock_ms(),
            exit_code=exit_code,
            signal=signal,
            start_error=start_error,
            is_fenced=self._is_fenced,
        )
        self.view = replace(self.view, end=end)
        self.is_alive = False
        self._tell(self)

    def _drop_job(self) -> None:
        if self._job is not None:
            job, self._job = self._job, None
            self.is_warm = False
            self.machine.truth.job_ended(job)

    def _change(self, **changes: Any) -> None:
        self.view = replace(self.view, **changes)
        self._tell(self)
