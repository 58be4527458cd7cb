"""Following committed events, and waiting for a record."""

from __future__ import annotations

import asyncio

import pytest

from hostler.base.encoding import decode
from hostler.base.errors import Failed
from hostler.base.ids import NodeId
from hostler.core.events import Event
from hostler.core.inputs import JoinAgent
from hostler.core.replies import Accepted
from hostler.engine.engine import Engine
from hostler.engine.publish import Publisher, Subscription
from hostler.model.record import Record
from hostler.ports.store import Commit, EventsGone, Keep, StoredEvent
from hostler.store.memory import MemoryStore
from hostler.testing.virtual_time import pass_ms, run_virtually
from tests.engine.test_loop import CONFIGURATION, join, settled, with_engine


def event(seq: int) -> StoredEvent:
    return StoredEvent(seq, seq * 10, b"event %d" % seq)


async def a_store(count: int) -> MemoryStore:
    store = MemoryStore()
    for seq in range(1, count + 1):
        await store.commit(Commit(seq, seq * 10, 0, (), [event(seq)]))
    return store


def test_a_follower_gets_what_is_kept_and_then_what_comes() -> None:
    async def main() -> None:
        publisher = Publisher(await a_store(3))
        publisher.begin_after(3)
        follower = Subscription(publisher, after_seq=1)
        assert [one.seq for one in await follower.take()] == [2, 3]
        waiting = asyncio.ensure_future(follower.take())
        await pass_ms(1_000)
        assert not waiting.done()
        publisher.publish([event(4), event(5)])
        assert [one.seq for one in await waiting] == [4, 5]
        assert follower.after_seq == 5

    run_virtually(main())


def test_nothing_new_until_the_timeout_is_no_event() -> None:
    async def main() -> None:
        follower = Subscription(Publisher(await a_store(0)), after_seq=0)
        assert await follower.take(timeout_ms=15_000) == ()

    run_virtually(main())


def test_a_slow_follower_reads_on_in_the_store_without_a_gap() -> None:
    async def main() -> None:
        store = await a_store(20)
        publisher = Publisher(store, recent_count_max=4)
        slow = Subscription(publisher, after_seq=0)
        for seq in range(1, 21):
            publisher.publish([event(seq)])
        seen: list[int] = []
        while len(seen) < 20:
            seen += [one.seq for one in await slow.take(limit=3)]
        assert seen == list(range(1, 21))

    run_virtually(main())


def test_a_follower_that_fell_behind_what_is_kept_is_told_so() -> None:
    async def main() -> None:
        store = await a_store(20)
        await store.prune(Keep(events=5, journal=5))
        publisher = Publisher(store, recent_count_max=2)
        publisher.begin_after(20)
        with pytest.raises(EventsGone) as gone:
            await Subscription(publisher, after_seq=3).take()
        assert gone.value.oldest_seq == 16

    run_virtually(main())


def test_the_end_is_told_after_what_there_was() -> None:
    async def main() -> None:
        publisher = Publisher(await a_store(0))
        follower = Subscription(publisher, after_seq=0)
        publisher.publish([event(1)])
        publisher.end(Failed("engine_stopped", "over"))
        assert [one.seq for one in await follower.take()] == [1]
        with pytest.raises(Failed, match="over"):
            await follower.take()

    run_virtually(main())


def test_a_snapshot_and_the_stream_join_without_a_gap() -> None:
    async def act(engine: Engine) -> None:
        await engine.submit(CONFIGURATION)
        seq = await engine.read(lambda fleet: fleet.event_seq)
        follower = engine.subscribe(seq)
        before = engine.subscribe(0)
        await engine.submit(CONFIGURATION)  # changes nothing
        assert await follower.take(timeout_ms=100) == ()
        told = [decode(one.body, Event).kind.value for one in await before.take()]
        assert told == ["server_started", "configuration_applied"]

    with_engine(act)


def test_a_watch_answers_once_the_committed_record_is_as_wanted() -> None:
    async def act(engine: Engine) -> None:
        await engine.submit(CONFIGURATION)
        joined = await engine.submit(join())
        assert isinstance(joined, Accepted)
        seen: list[Record | None] = []

        def until(record: Record | None) -> bool:
            seen.append(record)
            return getattr(record, "hostname", "") == "renamed"

        waiting = asyncio.ensure_future(engine.watch("node", joined.subject_id, until, 60_000))
        await settled(engine)
        assert not waiting.done()
        again = JoinAgent(
            request_id="again",
            principal="agent",
            node_id=NodeId(joined.subject_id),
            hostname="renamed",
        )
        assert isinstance(await engine.submit(again), Accepted)
        found = await waiting
        assert found is seen[-1]
        assert getattr(found, "hostname", "") == "renamed"

    with_engine(act)


def test_a_watch_that_runs_out_of_time_gives_the_record_as_it_is() -> None:
    async def act(engine: Engine) -> None:
        await engine.submit(CONFIGURATION)
        found = await engine.watch("pool", "p", lambda _: False, 500)
        assert getattr(found, "name", "") == "p"
        assert await engine.watch("pool", "q", lambda _: False, 500) is None

    with_engine(act)


def test_a_watch_ends_with_the_engine() -> None:
    async def act(engine: Engine) -> None:
        await settled(engine)
        waiting = asyncio.ensure_future(engine.watch("pool", "p", lambda _: False, 60_000))
        await asyncio.sleep(0)
        await engine.stop()
        with pytest.raises(Failed, match="stopping"):
            await waiting

    with_engine(act)
