"""The store's threads: in order, one hop there and one back, and gone when nobody has them."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from hostler.store.sqlite.threads import Threads
from tests.eventually import eventually


@pytest.fixture
def threads() -> Threads:
    return Threads()


async def test_calls_are_made_in_their_order_on_one_thread(threads: Threads) -> None:
    made: list[int] = []

    def work(number: int) -> str:
        made.append(number)
        return threading.current_thread().name

    names = await asyncio.gather(*(threads.on_writer(work, number) for number in range(100)))
    assert made == list(range(100))
    assert set(names) == {"store-writer"}
    assert await threads.on_reader(work, 100) == "store-reader"


async def test_what_a_call_raises_comes_to_its_caller_and_the_thread_goes_on(
    threads: Threads,
) -> None:
    def fail() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        await threads.on_writer(fail)
    assert await threads.on_writer(len, "abc") == 3


async def test_a_call_under_way_is_finished_though_its_caller_is_cancelled(
    threads: Threads,
) -> None:
    began, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        may_end.wait()
        ended.set()

    under_way = asyncio.create_task(threads.on_writer(work))
    made: list[str] = []
    waiting = asyncio.create_task(threads.on_writer(made.append, "never begun"))
    assert await asyncio.to_thread(began.wait, 30)
    under_way.cancel()
    waiting.cancel()
    await asyncio.gather(under_way, waiting, return_exceptions=True)
    may_end.set()
    await threads.on_writer(made.append, "next")
    assert ended.is_set()
    assert made == ["next"]


async def test_a_stop_lets_finish_what_was_given_before_it(threads: Threads) -> None:
    made: list[str] = []
    given = asyncio.create_task(threads.on_writer(made.append, "last"))
    await asyncio.sleep(0)
    threads.stop()
    await given
    assert made == ["last"]


async def test_threads_end_when_nobody_has_them() -> None:
    threads = Threads()
    ours = {await threads.on_writer(threading.current_thread)}
    ours.add(await threads.on_reader(threading.current_thread))
    del threads
    gc.collect()
    eventually(lambda: not any(one.is_alive() for one in ours), what="ended threads")
