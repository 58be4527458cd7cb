"""A decision of the past is made again from the journal, as it was and with one fact altered."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hostler.base.errors import Rejected
from hostler.base.ids import BundleId, NodeId, ReplicaId
from hostler.core.explain.alterations import read_alteration
from hostler.core.inputs import (
    AgentSaidHello,
    ApplyConfiguration,
    CordonNode,
    JoinAgent,
    SubmitBundle,
)
from hostler.core.replies import Accepted
from hostler.core.version import CORE_VERSION
from hostler.engine.engine import Engine
from hostler.engine.history import Moment, PastExplanation
from hostler.model.reason import Reason
from hostler.model.shape import Shape
from hostler.ports.store import Keep
from hostler.store.memory import MemoryDisk, MemoryStore
from hostler.testing.builders import a_fixed_tier, a_job, a_pool
from hostler.testing.virtual_time import VirtualClock
from tests.engine.lab import World, settings

REPLICA = ReplicaId("b1/main/0")


class Tale:
    """An engine, and what was asked of it."""

    def __init__(self, engine: Engine, store: MemoryStore) -> None:
        self.engine = engine
        self.store = store
        self._count = 0

    async def ask(self, kind: type, **fields: object) -> str:
        self._count += 1
        answer = await self.engine.submit(
            kind(request_id=f"r{self._count}", principal="tester", **fields)
        )
        assert isinstance(answer, Accepted), answer
        return answer.subject_id

    async def node(self, capacity: int) -> NodeId:
        node_id = NodeId(
            await self.ask(JoinAgent, pool="p", tier="own", machine_id=f"m{self._count}")
        )
        shape = Shape(capacity=capacity, cores_milli=8_000, memory_bytes=2**34)
        await self.engine.observe(AgentSaidHello(node_id=node_id, incarnation=1, shape=shape))
        await self.engine.read(lambda fleet: None)
        return node_id

    async def submit(self, name: str, capacity: int) -> None:
        job = a_job(capacity=capacity)
        await self.ask(SubmitBundle, bundle_id=BundleId(name), pool="p", jobs=(job,))

    async def revision(self) -> int:
        return await self.engine.read(lambda fleet: fleet.revision)

    async def event_seq(self) -> int:
        return await self.engine.read(lambda fleet: fleet.event_seq)

    async def past(
        self, moment: Moment, *given: str, node_id: NodeId | None = None
    ) -> PastExplanation:
        altered = [read_alteration(text) for text in given]
        return await self.engine.explain_past(moment, REPLICA, node_id, altered)


@pytest.fixture
async def tale() -> AsyncIterator[Tale]:
    store = MemoryStore(MemoryDisk())
    world = World(VirtualClock())
    engine = world.engine(store)
    await engine.start()
    tale = Tale(engine, store)
    pool = a_pool(tiers=(a_fixed_tier(),))
    await tale.ask(ApplyConfiguration, fleet_id="f", settings=settings(), pools=(pool,))
    yield tale
    await engine.stop()


async def test_a_decision_is_made_again_with_the_fleet_as_it_was(tale: Tale) -> None:
    first = await tale.node(10)
    await tale.submit("b1", 4)
    revision, event_seq = await tale.revision(), await tale.event_seq()
    second = await tale.node(4)
    await tale.ask(CordonNode, node_id=first, reason="later")
    for moment in (Moment(revision=revision), Moment(event_seq=event_seq)):
        found = await tale.past(moment, node_id=first)
        assert (found.rerun.revision, found.last_event_seq) == (revision, event_seq)
        assert found.first_event_seq <= event_seq
        assert found.rerun.is_reproduced
        assert found.rerun.altered is None
        decision = found.rerun.decision
        assert decision is not None
        assert (decision.outcome, decision.node_id) == ("placed", first)
        assert decision.attempts[0].candidate_count == 1
        assert found.explanation.fit is not None
        assert not found.explanation.fit.checks, "the cordon came later"
    with pytest.raises(Rejected, match=f"no node '{second}' then"):
        await tale.past(Moment(revision=revision), node_id=second)


async def test_one_fact_is_altered_and_nothing_is_left_of_it(tale: Tale) -> None:
    small, large = await tale.node(4), await tale.node(20)
    await tale.ask(CordonNode, node_id=small, reason="disk")
    await tale.submit("b1", 4)
    now = Moment(revision=await tale.revision())
    found = await tale.past(now, f"uncordon={small}")
    decision, altered = found.rerun.decision, found.rerun.altered
    assert decision is not None
    assert altered is not None
    assert (decision.node_id, altered.node_id) == (large, small)
    assert found.rerun.is_reproduced
    more = (await tale.past(now, "capacity=21")).rerun.altered
    assert more is not None
    assert (more.outcome, more.reason) == ("failed", Reason.NO_CAPACITY)
    with pytest.raises(Rejected, match="there is no node"):
        await tale.past(now, "uncordon=n-99")
    assert await tale.engine.read(lambda fleet: fleet.nodes[small].cordon is not None)


async def test_a_step_that_decided_nothing_about_it_says_so(tale: Tale) -> None:
    await tale.node(10)
    await tale.submit("b1", 4)
    await tale.submit("b2", 4)
    found = await tale.past(Moment(revision=await tale.revision()))
    assert found.rerun.decision is None
    assert [one.outcome for one in found.explanation.decisions] == ["placed"]


async def test_what_is_not_kept_and_what_has_not_come_are_told(tale: Tale) -> None:
    await tale.node(10)
    before = Moment(revision=await tale.revision())
    await tale.submit("b1", 4)
    with pytest.raises(Rejected, match=f"no replica '{REPLICA}' then"):
        await tale.past(before)
    for moment in (Moment(revision=10_000), Moment(event_seq=10_000)):
        with pytest.raises(Rejected, match="not happened yet") as future:
            await tale.past(moment)
        assert future.value.code == "moment_unknown"
    for number in range(3):
        await tale.submit("b2", 1 + number)
    await tale.store.prune(Keep(events=10, journal=2))
    for moment in (before, Moment(event_seq=1)):
        with pytest.raises(Rejected, match="does not reach back") as past:
            await tale.past(moment)
        assert past.value.code == "journal_too_short"
        assert past.value.fields["oldest_revision"] == await tale.revision() - 1
    now = Moment(revision=await tale.revision())
    assert (await tale.past(now)).core_version == CORE_VERSION
