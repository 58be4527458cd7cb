"""Commands leave as one call each, and every way in which a call can end is an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import get_args

import pytest

from hostler.base.ids import AllocationId, CommandId, LeaseId, MachineId, NodeId
from hostler.core import limits as core_limits
from hostler.core.delta import Dispatch
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyInput, CommandFailed, CommandSettled, Outcome, Succeeded
from hostler.engine import limits
from hostler.engine.boundaries import Boundary
from hostler.engine.dispatch import Dispatcher
from hostler.engine.gauges import Gauges
from hostler.engine.provider_calls import ProviderCalls
from hostler.model import Pool, Settings
from hostler.model.command import (
    CheckMachine,
    Command,
    EndLease,
    LaunchMachine,
    ListMachines,
    StartAllocation,
    StopAllocation,
    StopMachine,
)
from hostler.ports.agents import (
    AgentCommand,
    AgentSessionLost,
    AgentUnreachable,
)
from hostler.ports.provider import (
    CapacityUnavailable,
    CredentialsRejected,
    OutcomeUnknown,
    ProviderFailed,
    QuotaExceeded,
    RequestInvalid,
    Throttled,
)
from hostler.providers.registry import Registry
from hostler.testing.builders import a_pool, an_elastic_tier
from hostler.testing.fake_provider import FakeCloud, Method, fake_provider_kind
from hostler.testing.virtual_time import VirtualClock, pass_ms, run_virtually
from hostler.wire.agent import CommandAnswered
from tests.engine.lab import KEYS, PowerSwitch

LAUNCH = LaunchMachine(
    node_id=NodeId("n-1"),
    epoch=2,
    pool="p",
    tier="cloud",
    provider="fake",
    offer="small",
    made_of=an_elastic_tier().offers[0],
    options_json='{"zone":"a"}',
)
END_LEASE = EndLease(node_id=NodeId("n-1"), node_epoch=1, lease_id=LeaseId("l-1"), epoch=1)


def stop_of(machine_id: str | None) -> StopMachine:
    return StopMachine(
        node_id=NodeId("n-1"),
        epoch=2,
        pool="p",
        tier="cloud",
        provider="fake",
        machine_id=None if machine_id is None else MachineId(machine_id),
    )


def check_of(machine_id: str) -> CheckMachine:
    return CheckMachine(
        node_id=NodeId("n-1"),
        pool="p",
        tier="cloud",
        provider="fake",
        machine_id=MachineId(machine_id),
    )


def a_configured_fleet() -> Fleet:
    fleet = Fleet()
    pool: Pool = a_pool("p", tiers=(an_elastic_tier(options_json='{"zone": "a"}'),))
    fleet.load([Settings(fleet_id="f-ours"), pool], revision=1, event_seq=0, now_ms=0)
    return fleet


Answer = Callable[[AgentCommand], Awaitable[CommandAnswered]]


class OneAgent:
    """A gateway whose every answer comes from one function."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.delivered: list[AgentCommand] = []

    async def deliver(self, node_id: NodeId, command: AgentCommand) -> CommandAnswered:
        self.delivered.append(command)
        return await self._answer(command)

    def dismiss(self, node_id: NodeId, reason: str) -> None:
        raise AssertionError("nobody is retired here")


async def done(command: AgentCommand) -> CommandAnswered:
    return CommandAnswered(command_id=command.command_id, outcome="done")


class Bench:
    """A dispatcher, and what it has told."""

    def __init__(self, answer: Answer = done, switch: PowerSwitch | None = None) -> None:
        self.cloud = FakeCloud()
        self.fleet = a_configured_fleet()
        self.settled: dict[str, list[Outcome]] = {}
        self.defects: list[BaseException] = []
        self.agent = OneAgent(answer)
        self.gauges = Gauges()
        registry = Registry(
            Path("unused"), VirtualClock(), {"fake": fake_provider_kind(self.cloud)}
        )
        self.dispatcher = Dispatcher(
            ProviderCalls(registry, KEYS, "http://server"),
            self.agent,
            self._observe,
            gauges=self.gauges,
            on_defect=self.defects.append,
            boundary=switch or PowerSwitch(),
        )

    async def _observe(self, *inputs: AnyInput) -> None:
        for one in inputs:
            assert isinstance(one, CommandSettled)
            self.settled.setdefault(one.command_id, []).append(one.outcome)

    def send(self, command: Command, command_id: str = "c", attempt: int = 1) -> None:
        dispatch = Dispatch(
            command_id=CommandId(command_id),
            command=command,
            attempt=attempt,
            patience_ms=core_limits.patience_ms(command),
        )
        self.dispatcher.send(self.fleet, [dispatch])

    async def outcome(self, command: Command, *, within_ms: int = 1_000) -> Outcome:
        self.send(command)
        await pass_ms(within_ms)
        (outcome,) = self.settled.pop("c")
        return outcome


def on_a_bench(act: Callable[[Bench], Awaitable[None]], answer: Answer = done) -> None:
    async def main() -> None:
        bench = Bench(answer)
        await act(bench)
        await bench.dispatcher.close()
        assert bench.defects == []

    run_virtually(main())


def test_a_launch_is_made_from_its_command() -> None:
    async def act(bench: Bench) -> None:
        made = []
        bench.cloud.on_birth = lambda machine, request: made.append(request)
        outcome = await bench.outcome(LAUNCH)
        assert isinstance(outcome, Succeeded)
        (fact,) = outcome.machines
        assert (fact.node_id, fact.epoch, fact.pool, fact.tier) == ("n-1", 2, "p", "cloud")
        (request,) = made
        assert (request.token, request.fleet_id, request.offer.name) == ("c", "f-ours", "small")
        assert getattr(request.options, "zone", None) == "a"
        assert KEYS.verify_join_token(request.join_token.reveal()) == ("n-1", 2)
        assert "hj_" not in repr(request)

    on_a_bench(act)


@pytest.mark.parametrize(
    "failure",
    [
        RequestInvalid("no"),
        CapacityUnavailable("no", scope="zone"),
        QuotaExceeded("no", scope="region"),
        CredentialsRejected("no"),
        Throttled("no", retry_after_ms=7_000),
        OutcomeUnknown("no"),
    ],
    ids=lambda failure: failure.code,
)
def test_each_failure_of_a_provider_is_an_outcome_of_its_name(failure: ProviderFailed) -> None:
    async def act(bench: Bench) -> None:
        bench.cloud.fail_next("launch", failure)
        outcome = await bench.outcome(LAUNCH)
        assert isinstance(outcome, CommandFailed)
        assert (outcome.code, outcome.retry_after_ms) == (failure.code, failure.retry_after_ms)
        assert bench.gauges.outcome_counts == {("launch_machine", failure.code): 1}

    on_a_bench(act)


def test_what_a_provider_must_not_raise_is_its_defect() -> None:
    async def act(bench: Bench) -> None:
        def breaks(*_: object) -> None:
            raise KeyError("surprise")

        bench.cloud.on_birth = breaks
        outcome = await bench.outcome(LAUNCH)
        assert isinstance(outcome, CommandFailed)
        assert (outcome.code, outcome.message) == ("defect", "KeyError: 'surprise'")

    on_a_bench(act)


def test_a_call_without_an_answer_ends_with_its_deadline() -> None:
    async def act(bench: Bench) -> None:
        async def hangs(_: Method) -> None:
            await asyncio.get_running_loop().create_future()

        bench.cloud.pause = hangs
        patience_ms = core_limits.PATIENCE_MS["check_machine"]
        bench.send(check_of("m-1"))
        await pass_ms(patience_ms - 1)
        assert bench.settled == {}
        await pass_ms(2)
        (outcome,) = bench.settled["c"]
        assert isinstance(outcome, CommandFailed)
        assert outcome.code == "outcome_unknown"

    on_a_bench(act)


@pytest.mark.parametrize("change", [{"provider": "none"}, {"made_of": None}])
def test_what_was_not_configured_cannot_be_launched(change: dict[str, str | None]) -> None:
    async def act(bench: Bench) -> None:
        fields = {name: getattr(LAUNCH, name) for name in LAUNCH.__struct_fields__}
        outcome = await bench.outcome(LaunchMachine(**{**fields, **change}))
        assert isinstance(outcome, CommandFailed)
        assert outcome.code == "request_invalid"

    on_a_bench(act)


def test_a_check_brings_the_machine_or_says_that_it_is_gone() -> None:
    async def act(bench: Bench) -> None:
        launched = await bench.outcome(LAUNCH)
        assert await bench.outcome(check_of("m-000001")) == launched
        bench.cloud.end(MachineId("m-000001"), 1)
        assert await bench.outcome(check_of("m-000001")) == Succeeded(ended_at_ms=1)

    on_a_bench(act)


def test_a_list_brings_every_machine() -> None:
    async def act(bench: Bench) -> None:
        bench.send(LAUNCH, "one")
        bench.send(LAUNCH, "two")
        await pass_ms(10)
        outcome = await bench.outcome(ListMachines(provider="fake"))
        assert isinstance(outcome, Succeeded)
        assert [fact.machine_id for fact in outcome.machines] == ["m-000001", "m-000002"]

    on_a_bench(act)


def test_a_list_that_breaks_off_is_no_list() -> None:
    async def act(bench: Bench) -> None:
        bench.send(LAUNCH, "one")
        bench.send(LAUNCH, "two")
        await pass_ms(10)
        bench.cloud.fail_next("list_owned", OutcomeUnknown("torn"), is_done=True)
        assert isinstance(await bench.outcome(ListMachines(provider="fake")), CommandFailed)

    on_a_bench(act)


@pytest.mark.parametrize("machine_id", ["m-000001", None], ids=["by id", "by label"])
def test_a_stop_succeeds_only_when_the_machine_is_gone(machine_id: str | None) -> None:
    async def act(bench: Bench) -> None:
        bench.cloud.stop_ms = 10_000
        await bench.outcome(LAUNCH)
        still = await bench.outcome(stop_of(machine_id))
        assert isinstance(still, CommandFailed)
        assert (still.code, still.retry_after_ms) == ("outcome_unknown", 500)
        await pass_ms(10_000)
        gone = await bench.outcome(stop_of(machine_id))
        assert isinstance(gone, Succeeded)
        # Only whoever has its id can ask when it ended.
        assert (gone.ended_at_ms is not None) == (machine_id is not None)
        assert await bench.outcome(stop_of(machine_id)) == gone

    on_a_bench(act)


def test_an_agents_answer_is_the_outcome() -> None:
    async def refuses(command: AgentCommand) -> CommandAnswered:
        return CommandAnswered(
            command_id=command.command_id, outcome="refused", code="epoch_stale", message="old"
        )

    async def unreachable(_: AgentCommand) -> CommandAnswered:
        raise AgentUnreachable("n-1")

    async def lost(_: AgentCommand) -> CommandAnswered:
        raise AgentSessionLost("n-1")

    found: list[Outcome] = []

    async def act(bench: Bench) -> None:
        found.append(await bench.outcome(END_LEASE))

    for answer in (done, refuses, unreachable, lost):
        on_a_bench(act, answer)
    assert found[0] == Succeeded()
    assert found[1] == CommandFailed(code="refused", message="epoch_stale: old")
    assert [getattr(one, "code", "") for one in found[2:]] == ["unreachable", "outcome_unknown"]


def test_a_start_of_what_is_no_more_never_leaves() -> None:
    async def act(bench: Bench) -> None:
        command = StartAllocation(
            node_id=NodeId("n-1"), node_epoch=1, allocation_id=AllocationId("a-1"), epoch=1
        )
        outcome = await bench.outcome(command)
        assert isinstance(outcome, CommandFailed)
        assert outcome.code == "refused"
        assert bench.agent.delivered == []

    on_a_bench(act)


def test_a_second_attempt_at_an_agent_takes_the_place_of_the_first() -> None:
    """The first may wait for an answer on a link that is gone."""
    calls: list[int] = []

    async def answers_the_second(command: AgentCommand) -> CommandAnswered:
        calls.append(1)
        if len(calls) == 1:
            await asyncio.get_running_loop().create_future()
        return await done(command)

    async def act(bench: Bench) -> None:
        bench.send(END_LEASE)
        await pass_ms(10)
        bench.send(END_LEASE, attempt=2)
        await pass_ms(10)
        assert bench.settled == {"c": [Succeeded()]}

    on_a_bench(act, answers_the_second)


def test_a_second_attempt_at_a_provider_joins_the_first() -> None:
    """A launch that is under way must not be given up: its machine would be forgotten."""

    async def act(bench: Bench) -> None:
        async def slow(_: Method) -> None:
            await pass_ms(5_000)

        bench.cloud.pause = slow
        bench.send(LAUNCH)
        await pass_ms(10)
        bench.send(LAUNCH, attempt=2)
        await pass_ms(10_000)
        assert len(bench.settled["c"]) == 1
        assert len(bench.cloud.bill) == 1

    on_a_bench(act)


def test_one_target_never_holds_up_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "AGENT_CALL_COUNT_MAX", 2)

    async def hangs_on_one(command: AgentCommand) -> CommandAnswered:
        if command.command_id.startswith("hang"):
            await asyncio.get_running_loop().create_future()
        return await done(command)

    async def act(bench: Bench) -> None:
        for number in range(3):
            bench.send(END_LEASE, f"hang{number}")
        other = StopAllocation(
            node_id=NodeId("n-2"),
            node_epoch=1,
            allocation_id=AllocationId("a-1"),
            epoch=1,
            grace_ms=1,
            reason="",
        )
        bench.send(other, "other")
        await pass_ms(10)
        assert list(bench.settled) == ["other"]
        assert len(bench.agent.delivered) == 3
        await pass_ms(core_limits.PATIENCE_MS["end_lease"] + 10)
        assert sorted(bench.settled) == ["hang0", "hang1", "hang2", "other"]

    on_a_bench(act, hangs_on_one)


def test_every_command_has_a_patience() -> None:
    tags = {str(kind.__struct_config__.tag) for kind in get_args(Command)}
    assert tags == set(core_limits.PATIENCE_MS)


def test_a_crash_at_the_edge_is_the_engines_business() -> None:
    async def main() -> None:
        bench = Bench(switch=PowerSwitch(Boundary.AFTER_CALL_BEFORE_SETTLE))
        bench.send(LAUNCH)
        await pass_ms(10)
        assert [type(error).__name__ for error in bench.defects] == ["Crash"]
        assert bench.settled == {}
        await bench.dispatcher.close()
        bench.send(LAUNCH, "late")
        await pass_ms(10)
        assert len(bench.cloud.bill) == 1

    run_virtually(main())
