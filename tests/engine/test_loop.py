"""The loop: what requests, observations and readers get, also when the store fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from structlog.typing import EventDict

from hostler.base.errors import Defect, Failed
from hostler.base.ids import NodeId
from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.core.inputs import AgentSaidHello, AnyInput, FullScan, JoinAgent
from hostler.core.replies import Accepted, Refused
from hostler.core.step import step
from hostler.engine import limits
from hostler.engine.engine import Engine
from hostler.model.shape import Shape
from hostler.ports.store import (
    Commit,
    CommitDoubtful,
    Keep,
    LeadershipLost,
    Loaded,
    Store,
    StoreFailed,
)
from hostler.store.memory import MemoryDisk, MemoryStore
from hostler.testing.builders import a_fixed_tier, a_pool
from hostler.testing.faulty_store import CommitFault, FaultyStore
from hostler.testing.virtual_time import VirtualClock, pass_ms, run_virtually
from tests.engine.lab import World, configuration

Act = Callable[[Engine], Awaitable[None]]

CONFIGURATION = configuration(a_pool("p", tiers=(a_fixed_tier("own"),)))


def with_engine(act: Act, store: Store | None = None) -> None:
    """Start an engine on virtual time, act, and stop it."""

    async def main() -> None:
        engine = World(VirtualClock()).engine(store or MemoryStore())
        await engine.start()
        try:
            await act(engine)
        finally:
            await engine.stop()

    run_virtually(main())


def join(request_id: str = "join") -> JoinAgent:
    return JoinAgent(request_id=request_id, principal="agent", pool="p", tier="own", hostname="h")


def faulty(*faults: CommitFault, at: int = 2) -> FaultyStore:
    """Fail at and after a revision: the first is the start's, the second the first request's."""
    left = list(faults)
    return FaultyStore(
        MemoryStore(), lambda commit: left.pop(0) if left and commit.revision >= at else None
    )


async def settled(engine: Engine) -> None:
    """Let the start be committed, so that what comes next is the next commit."""
    await engine.watch("settings", "none", lambda _: False, timeout_ms=10)


def test_a_request_is_answered_when_it_is_durable() -> None:
    disk = MemoryDisk()

    async def act(engine: Engine) -> None:
        answer = await engine.submit(CONFIGURATION)
        assert isinstance(answer, Accepted)
        assert "settings" in disk.load().records["settings"]

    with_engine(act, MemoryStore(disk))


def test_a_refused_request_costs_no_commit() -> None:
    async def act(engine: Engine) -> None:
        await engine.submit(CONFIGURATION)
        before = await engine.read(lambda fleet: fleet.revision)
        answer = await engine.submit(JoinAgent(request_id="x", principal="a", pool="no", tier="no"))
        assert isinstance(answer, Refused)
        assert await engine.read(lambda fleet: fleet.revision) == before

    with_engine(act)


def test_requests_that_come_during_a_commit_share_the_next_one() -> None:
    async def slow(_: Commit) -> None:
        await pass_ms(50)

    async def act(engine: Engine) -> None:
        await engine.submit(CONFIGURATION)
        before = await engine.read(lambda fleet: fleet.revision)
        answers = await asyncio.gather(*[engine.submit(join(f"j{n}")) for n in range(50)])
        assert len({answer.subject_id for answer in answers if isinstance(answer, Accepted)}) == 50
        assert await engine.read(lambda fleet: fleet.revision) - before <= 2

    with_engine(act, FaultyStore(MemoryStore(), lambda _: None, slow))


def test_a_reader_never_sees_what_is_not_durable() -> None:
    seen: list[int] = []
    disk = MemoryDisk()

    async def act(engine: Engine) -> None:
        async def look(_: Commit) -> None:
            reading = asyncio.ensure_future(engine.read(lambda fleet: fleet.revision))
            await pass_ms(10)
            assert not reading.done()
            reading.add_done_callback(lambda done: seen.append(done.result()))

        store.pause = look
        await engine.submit(CONFIGURATION)
        store.pause = None
        await settled(engine)
        assert seen == [disk.load().revision]

    class Slow(FaultyStore):
        pause: Callable[[Commit], Awaitable[None]] | None = None

        async def commit(self, commit: Commit) -> None:
            if self.pause is not None:
                await self.pause(commit)
            await super().commit(commit)

    store = Slow(MemoryStore(disk), lambda _: None)

    async def first_settled(engine: Engine) -> None:
        await settled(engine)
        await act(engine)

    with_engine(first_settled, store)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (CommitFault.FAILED, "commit_failed"),
        (CommitFault.FULL, "store_full"),
        (CommitFault.DOUBTFUL_LOST, "commit_failed"),
    ],
)
def test_a_request_is_told_that_its_commit_did_not_happen(fault: CommitFault, code: str) -> None:
    async def act(engine: Engine) -> None:
        await settled(engine)
        with pytest.raises(Failed) as failed:
            await engine.submit(CONFIGURATION)
        assert (failed.value.code, failed.value.effect) == (code, "none")
        assert await engine.read(lambda fleet: fleet.settings) is None
        assert isinstance(await engine.submit(CONFIGURATION), Accepted)

    with_engine(act, faulty(fault))


def test_a_commit_in_doubt_that_happened_is_answered_as_if_nothing_was() -> None:
    async def act(engine: Engine) -> None:
        await settled(engine)
        assert isinstance(await engine.submit(CONFIGURATION), Accepted)
        assert isinstance(await engine.submit(join()), Accepted)
        assert engine.gauges.commit_doubtful_count == 1

    with_engine(act, faulty(CommitFault.DOUBTFUL_DONE))


@pytest.mark.parametrize("fault", CommitFault)
def test_an_observation_outlives_every_failure_of_the_store(fault: CommitFault) -> None:
    async def act(engine: Engine) -> None:
        await engine.submit(CONFIGURATION)
        joined = await engine.submit(join())
        assert isinstance(joined, Accepted)
        revision = await engine.read(lambda fleet: fleet.revision)
        faults.update({revision + 1: fault, revision + 2: fault})
        node_id = NodeId(joined.subject_id)
        hello = AgentSaidHello(node_id=node_id, incarnation=1, shape=Shape(capacity=1))
        await engine.observe(hello)
        node = await engine.watch(
            "node", joined.subject_id, lambda node: getattr(node, "incarnation", 0) == 1, 60_000
        )
        assert node is not None

    faults: dict[int, CommitFault] = {}
    with_engine(act, FaultyStore(MemoryStore(), lambda commit: faults.pop(commit.revision, None)))


def test_an_engine_that_lost_its_leadership_stops_itself() -> None:
    disk = MemoryDisk()

    async def main() -> None:
        engine = World(VirtualClock()).engine(MemoryStore(disk))
        await engine.start()
        await settled(engine)
        disk.claim()
        with pytest.raises(Failed) as failed:
            await engine.submit(CONFIGURATION)
        assert failed.value.code == "engine_failed"
        with pytest.raises(LeadershipLost):
            await engine.wait_stopped()
        with pytest.raises(Failed, match="stopped itself"):
            await engine.read(lambda fleet: fleet.revision)
        await engine.stop()

    run_virtually(main())


def test_a_store_that_stays_in_doubt_stops_the_engine() -> None:
    class Lost(MemoryStore):
        is_lost = False

        async def commit(self, commit: Commit) -> None:
            self.is_lost = True
            raise CommitDoubtful(revision=commit.revision)

        async def load(self) -> Loaded:
            if self.is_lost:
                raise Failed("store_failed", "the disk does not answer")
            return await super().load()

    async def main() -> None:
        engine = World(VirtualClock()).engine(Lost())
        await engine.start()
        with pytest.raises(Failed) as failed:
            await engine.wait_stopped()
        assert failed.value.code == "store_in_doubt"
        await engine.stop()

    run_virtually(main())


@pytest.mark.parametrize("is_taken_over", [False, True])
def test_a_store_in_doubt_is_asked_until_it_can_say(*, is_taken_over: bool) -> None:
    """Unless the answer is that another server has it now."""
    disk = MemoryDisk()

    class Shaken(FaultyStore):
        silent_count = 3

        async def load(self) -> Loaded:
            if self.is_shaken and self.silent_count:
                self.silent_count -= 1
                raise Failed("store_failed", "the disk does not answer yet")
            return await super().load()

        is_shaken = False

    def fault_of(commit: Commit) -> CommitFault | None:
        if commit.revision != 2 or store.is_shaken:
            return None
        store.is_shaken = True
        if is_taken_over:
            disk.claim()
        return CommitFault.DOUBTFUL_LOST

    store = Shaken(MemoryStore(disk), fault_of)

    async def main() -> None:
        engine = World(VirtualClock()).engine(store)
        await engine.start()
        await settled(engine)
        with pytest.raises(Failed) as failed:
            await engine.submit(CONFIGURATION)
        if is_taken_over:
            assert (failed.value.code, failed.value.effect) == ("engine_failed", "unknown")
            with pytest.raises(LeadershipLost):
                await engine.wait_stopped()
        else:
            assert failed.value.code == "commit_failed"
            assert isinstance(await engine.submit(CONFIGURATION), Accepted)
        assert store.silent_count == 0
        await engine.stop()

    run_virtually(main())


def test_a_defect_stops_the_engine_and_leaves_the_store_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = MemoryDisk()

    def broken(*_: object) -> None:
        raise Defect("INV-TEST-1", "provoked")

    async def main() -> None:
        engine = World(VirtualClock()).engine(MemoryStore(disk))
        await engine.start()
        await settled(engine)
        before = disk.load()
        monkeypatch.setattr("hostler.core.invariants.check_changed", broken)
        with pytest.raises(Failed, match="stopped itself"):
            await engine.submit(CONFIGURATION)
        with pytest.raises(Defect):
            await engine.wait_stopped()
        assert disk.load() == before
        await engine.stop()

    run_virtually(main())


def test_more_requests_than_can_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REQUEST_COUNT_MAX", 3)

    async def act(engine: Engine) -> None:
        answers = await asyncio.gather(
            *[engine.submit(join(f"j{n}")) for n in range(5)], return_exceptions=True
        )
        refused = [one for one in answers if isinstance(one, Failed)]
        assert [one.code for one in refused] == ["overloaded", "overloaded"]
        assert refused[0].retry_after_ms

    with_engine(act)


def test_whoever_observes_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OBSERVATION_COUNT_MAX", 2)
    hello = AgentSaidHello(node_id=NodeId("n-none"), incarnation=1)

    async def act(engine: Engine) -> None:
        await settled(engine)
        observing = [asyncio.ensure_future(engine.observe(hello)) for _ in range(10)]
        await asyncio.sleep(0)
        assert sum(one.done() for one in observing) == 2
        await asyncio.gather(*observing)
        assert engine.gauges.input_counts["agent_said_hello"] >= 8

    with_engine(act)


def test_whoever_waits_to_observe_is_told_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OBSERVATION_COUNT_MAX", 1)
    hello = AgentSaidHello(node_id=NodeId("n-none"), incarnation=1)

    async def act(engine: Engine) -> None:
        await settled(engine)
        observing = [asyncio.ensure_future(engine.observe(hello)) for _ in range(3)]
        await asyncio.sleep(0)
        await engine.abandon()
        ends = await asyncio.gather(*observing, return_exceptions=True)
        assert [type(one) for one in ends] == [type(None), Failed, Failed]

    with_engine(act)


def test_a_request_that_nobody_waits_for_any_more_is_not_made() -> None:
    async def act(engine: Engine) -> None:
        await engine.submit(CONFIGURATION)
        asking = asyncio.ensure_future(engine.submit(join()))
        await asyncio.sleep(0)
        asking.cancel()
        await settled(engine)
        assert await engine.read(lambda fleet: len(fleet.nodes)) == 0

    with_engine(act)


def test_a_full_scan_finds_nothing(logs: list[EventDict]) -> None:
    async def act(engine: Engine) -> None:
        await engine.submit(CONFIGURATION)
        await engine.submit(join())
        await engine.observe(FullScan())
        await settled(engine)
        assert (engine.gauges.scan_count, engine.gauges.scan_find_count) == (1, 0)

    with_engine(act)
    assert [log for log in logs if log["event"] == "full_scan_found"] == []


def test_what_a_full_scan_finds_is_said_and_counted(
    logs: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(fleet: Fleet, inputs: Sequence[AnyInput], now_ms: int) -> Delta:
        """Decide as ever, but see a pool's node only when looking at everything."""
        if isinstance(inputs[0], FullScan):
            return step(fleet, [join()], now_ms)
        return step(fleet, inputs, now_ms)

    async def act(engine: Engine) -> None:
        await engine.submit(CONFIGURATION)
        monkeypatch.setattr("hostler.engine.loop.step", forgetful)
        await engine.observe(FullScan())
        await settled(engine)
        assert engine.gauges.scan_find_count > 0

    with_engine(act)
    (found,) = [log for log in logs if log["event"] == "full_scan_found"]
    assert "node:n-000001" in found["records"]


def test_everything_is_looked_at_and_history_cut_back_now_and_then(logs: list[EventDict]) -> None:
    class Pruned(MemoryStore):
        prunes: list[tuple[int, int]] = []

        async def prune(self, keep: Keep) -> None:
            self.prunes.append((keep.events, keep.journal))
            if len(self.prunes) == 1:
                raise StoreFailed("the disk is busy")

    store = Pruned()

    async def act(engine: Engine) -> None:
        await pass_ms(limits.PRUNE_EVERY_MS)  # nothing to go by before the first configuration
        assert store.prunes == []
        await engine.submit(CONFIGURATION)
        await pass_ms(limits.FULL_SCAN_EVERY_MS)
        assert store.prunes[:2] == [(100_000, 20_000)] * 2
        assert engine.gauges.scan_count == 1

    with_engine(act, store)
    assert [log["event"] for log in logs] == ["prune_failed"]


def test_a_dry_run_says_what_would_be_and_changes_nothing() -> None:
    async def act(engine: Engine) -> None:
        await engine.submit(CONFIGURATION)
        before = await engine.read(lambda fleet: fleet.digest())
        told = await engine.dry_run(join("dry"))
        answer = told.results["dry"]
        assert isinstance(answer, Accepted)
        assert ("node", answer.subject_id) in told.changes
        assert await engine.read(lambda fleet: fleet.digest()) == before
        assert await engine.submit(join("wet")) == answer

    with_engine(act)


def test_a_stopping_engine_answers_what_it_has_begun() -> None:
    async def main() -> None:
        engine = World(VirtualClock()).engine(MemoryStore())
        await engine.start()
        await engine.submit(CONFIGURATION)
        await engine.stop()
        await engine.wait_stopped()
        with pytest.raises(Failed) as failed:
            await engine.submit(join())
        assert failed.value.code == "engine_stopped"

    run_virtually(main())
