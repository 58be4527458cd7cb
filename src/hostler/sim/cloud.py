"""The cloud: a provider with a hidden truth.

What the server is told about machines may be late, lost or a failure. What is true, which machines
exist, since when, and that each is billed until it is gone, only checkers may see. A launch is
idempotent by its token; a machine carries its label from birth; gone is only what is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from hostler.base.ids import MachineId, NodeId, numbered
from hostler.core.inputs import CommandFailed, Outcome, Succeeded
from hostler.core.machine_fact import MachineFact
from hostler.engine.provider_calls import STILL_STOPPING_MS
from hostler.model.command import (
    CheckMachine,
    LaunchMachine,
    ListMachines,
    ProviderCommand,
    StopMachine,
)
from hostler.model.node import NoticeKind
from hostler.sim.world import World

FAILURES: Final = (
    "request_invalid",
    "capacity_unavailable",
    "quota_exceeded",
    "credentials_rejected",
    "throttled",
    "outcome_unknown",
    "unreachable",
    "defect",
)
"""Every way in which a provider may fail."""

_REFUSALS: Final = tuple(code for code in FAILURES if code != "outcome_unknown")


class CloudPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the cloud behaves while faults are on. Chances are in a million."""

    delay_ms: tuple[int, int] = (50, 2_000)
    boot_ms: tuple[int, int] = (2_000, 20_000)
    stop_ms: tuple[int, int] = (500, 10_000)
    """From being told to stop until gone."""
    is_failing_ppm: int = 0
    """A call fails, with a cause that the seed draws, and changes nothing."""
    is_answer_lost_ppm: int = 0
    """A call has its effect and the caller never hears of it."""
    is_swallowed_ppm: int = 0
    """A call has no effect and is never answered."""
    is_unknown_ppm: int = 0
    """A call may or may not have its effect and says that it does not know."""
    is_late_ppm: int = 0
    """A call reaches the provider only after a long way, perhaps when nobody waits any more."""
    late_ms: tuple[int, int] = (10_000, 120_000)
    never_boots_ppm: int = 0
    list_lag_ms: tuple[int, int] = (0, 0)
    """How long a new machine is missing from lists."""
    listed_after_ms: int = 0
    """How long a machine that is gone is still in lists."""


CALM: Final = CloudPlan(delay_ms=(50, 500), boot_ms=(2_000, 5_000), stop_ms=(500, 2_000))


class CloudMachine:
    """A machine as the provider truly has it."""

    def __init__(self, machine_id: MachineId, command: LaunchMachine, born_at_ms: int) -> None:
        self.machine_id = machine_id
        self.node_id = command.node_id
        self.epoch = command.epoch
        self.pool = command.pool
        self.tier = command.tier
        self.provider = command.provider
        self.offer = command.offer
        self.born_at_ms = born_at_ms
        self.gone_at_ms: int | None = None
        self.listed_from_ms = born_at_ms
        self.is_stopping = False
        self.notice: NoticeKind | None = None
        self.ends_at_ms = 0
        """When it is taken back, by the notice."""

    @property
    def exists(self) -> bool:
        """True while it is billed."""
        return self.gone_at_ms is None

    def fact(self) -> MachineFact:
        """Return what the provider says of it."""
        return MachineFact(
            machine_id=self.machine_id,
            node_id=NodeId(self.node_id),
            epoch=self.epoch,
            pool=self.pool,
            tier=self.tier,
            created_at_ms=self.born_at_ms,
            notice=self.notice,
            ends_at_ms=self.ends_at_ms,
        )


class Hardware(Protocol):
    """Who makes a machine run and lets it end."""

    def machine_born(self, machine: CloudMachine, *, boots_in_ms: int | None) -> None:
        """A machine exists now; it boots in a while, or never."""
        ...

    def machine_gone(self, machine: CloudMachine) -> None:
        """A machine is no more, and nothing runs on it."""
        ...


Answer = Callable[[Outcome], None]


class Cloud:
    """The provider.

    Attributes:
        plan: How it behaves at present.
        machines: Every machine that ever was; the truth, for checkers.
    """

    def __init__(self, world: World, plan: CloudPlan, hardware: Hardware) -> None:
        self.world = world
        self.plan = plan
        self.machines: dict[MachineId, CloudMachine] = {}
        self.answers: Callable[[ProviderCommand], Outcome | None] | None = None
        """What is answered instead of what would be, if anything; the call changes nothing."""
        self.swallows: Callable[[ProviderCommand], bool] | None = None
        """Which calls change nothing and are never answered."""
        self._hardware = hardware
        self._rng = world.stream("cloud")
        self._count = 0
        self._machine_by_token: dict[str, MachineId] = {}
        self._forgets_dead_tokens = self._rng.chance(500_000)

    def existing(self) -> list[CloudMachine]:
        """Return the machines that exist now; the bill."""
        return [machine for machine in self.machines.values() if machine.exists]

    # -- calls -------------------------------------------------------------------------------

    def call(self, token: str, command: ProviderCommand, answer: Answer) -> None:
        """Take a call. The answer may come late, never, or be a failure."""
        plan, rng = self.plan, self._rng
        way_ms = rng.between(*plan.delay_ms)
        if rng.chance(plan.is_late_ppm):
            self.world.probe("cloud.call_late")
            way_ms += rng.between(*plan.late_ms)
        self.world.after(way_ms, self._arrived, token, command, answer)

    def _arrived(self, token: str, command: ProviderCommand, answer: Answer) -> None:
        plan, rng = self.plan, self._rng
        is_swallowed = rng.chance(plan.is_swallowed_ppm)
        if is_swallowed or (self.swallows is not None and self.swallows(command)):
            self.world.probe("cloud.swallowed")
            return
        instead = None if self.answers is None else self.answers(command)
        if instead is not None:
            self._answer(answer, instead)
            return
        if rng.chance(plan.is_failing_ppm):
            self._answer(answer, _failure(rng.choice(_REFUSALS), rng.between(100, 5_000)))
            return
        is_unknown = rng.chance(plan.is_unknown_ppm)
        if is_unknown and rng.chance(500_000):
            self._answer(answer, _failure("outcome_unknown", None))
            return
        outcome = self._obey(token, command)
        if is_unknown:
            self.world.probe("cloud.unknown_but_done")
            outcome = _failure("outcome_unknown", None)
        if rng.chance(plan.is_answer_lost_ppm):
            self.world.probe("cloud.answer_lost")
            return
        self._answer(answer, outcome)

    def _answer(self, answer: Answer, outcome: Outcome) -> None:
        self.world.after(self._rng.between(*self.plan.delay_ms) // 4, answer, outcome)

    def _obey(self, token: str, command: ProviderCommand) -> Outcome:
        match command:
            case LaunchMachine():
                return Succeeded(machines=(self._launch(token, command).fact(),))
            case StopMachine():
                return self._stop(command)
            case CheckMachine():
                found = self.machines.get(command.machine_id)
                is_there = found is not None and found.exists
                if found is None or not is_there:
                    return Succeeded(ended_at_ms=None if found is None else found.gone_at_ms)
                return Succeeded(machines=(found.fact(),))
            case ListMachines():
                listed = [m for m in self.machines.values() if self._is_listed(m, command)]
                return Succeeded(machines=tuple(machine.fact() for machine in listed))

    def _is_listed(self, machine: CloudMachine, command: ListMachines) -> bool:
        now_ms = self.world.now_ms
        until_at_ms = machine.gone_at_ms
        if until_at_ms is not None:
            until_at_ms += self.plan.listed_after_ms
        is_there = until_at_ms is None or now_ms < until_at_ms
        is_theirs = machine.provider == command.provider
        return is_there and is_theirs and machine.listed_from_ms <= now_ms

    def _launch(self, token: str, command: LaunchMachine) -> CloudMachine:
        known = self._machine_by_token.get(token)
        if known is not None and (self.machines[known].exists or not self._forgets_dead_tokens):
            self.world.probe("cloud.launch_repeated")
            return self.machines[known]
        self._count += 1
        machine_id = MachineId(numbered("m", self._count))
        machine = CloudMachine(machine_id, command, self.world.now_ms)
        machine.listed_from_ms += self._rng.between(*self.plan.list_lag_ms)
        self.machines[machine_id] = machine
        self._machine_by_token[token] = machine_id
        never = self._rng.chance(self.plan.never_boots_ppm)
        boots_in_ms = None if never else self._rng.between(*self.plan.boot_ms)
        if never:
            self.world.probe("cloud.never_boots")
        self.world.log(f"cloud {machine_id} born for {command.node_id}")
        self._hardware.machine_born(machine, boots_in_ms=boots_in_ms)
        return machine

    def _stop(self, command: StopMachine) -> Outcome:
        meant = [
            machine
            for machine in self.existing()
            if machine.machine_id == command.machine_id
            or (
                # As the engine does without an id: by the label, in what a list tells.
                command.machine_id is None
                and machine.node_id == command.node_id
                and machine.listed_from_ms <= self.world.now_ms
            )
        ]
        if not meant:
            known = [command.machine_id, *command.met_machine_ids]
            ends = [self.machines[each].gone_at_ms or 0 for each in known if each in self.machines]
            return Succeeded(ended_at_ms=max(ends, default=None))
        for machine in meant:
            if not machine.is_stopping:
                machine.is_stopping = True
                self.world.after(self._rng.between(*self.plan.stop_ms), self.end, machine, "asked")
        return CommandFailed(
            code="outcome_unknown",
            message="the machine is still stopping",
            retry_after_ms=STILL_STOPPING_MS,
            machines=tuple(machine.fact() for machine in meant),
        )

    # -- what happens by itself --------------------------------------------------------------

    def bring(self, machine: CloudMachine) -> None:
        """Begin a machine that nobody of ours asked for, with a label of ours."""
        self.machines[machine.machine_id] = machine
        self._hardware.machine_born(machine, boots_in_ms=None)

    def end(self, machine: CloudMachine, why: str) -> None:
        """End a machine: it is off the bill, and nothing runs on it."""
        if machine.exists:
            machine.gone_at_ms = self.world.now_ms
            self.world.log(f"cloud {machine.machine_id} gone: {why}")
            self._hardware.machine_gone(machine)


def _failure(code: str, retry_after_ms: int | None) -> CommandFailed:
    is_told = code in ("throttled", "capacity_unavailable", "quota_exceeded")
    return CommandFailed(
        code=code, message="made up", retry_after_ms=retry_after_ms if is_told else None
    )
