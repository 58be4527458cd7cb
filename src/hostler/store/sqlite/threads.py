"""The store's two threads: SQLite waits for disks, and the event loop must not.

Not an executor's: between a step and its answer there is one hop there and one back, and an
executor's futures, with their locks and their chains, cost more than SQLite does (measured).
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """One thread that writes and one that reads; each does its work in the order of the calls.

    A call whose caller is cancelled is finished all the same, unless it has not begun.
    """

    def __init__(self) -> None:
        self._writer = _Worker("store-writer")
        self._reader = _Worker("store-reader")

    async def on_writer(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` returns on the writing thread."""
        return await self._writer.do(partial(work, *args, **kwargs))

    async def on_reader(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` returns on the reading thread."""
        return await self._reader.do(partial(work, *args, **kwargs))

    def stop(self) -> None:
        """End both once they have nothing left to do."""
        self._writer.stop()
        self._reader.stop()


@dataclass(frozen=True, slots=True)
class _Call:
    """Something to do, and who waits for it where."""

    work: Callable[[], Any]
    done: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop

    def make(self) -> None:
        """Do it, here, and say so there."""
        if self.done.cancelled():
            return
        result, failure = None, None
        try:
            result = self.work()
        except BaseException as error:  # noqa: BLE001 - whoever waits for it shall have it
            failure = error
        # A loop that has closed has nobody who waits.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(_settle, self.done, result, failure)


class _Worker:
    """One thread. It ends when told, or when nobody has it any more."""

    def __init__(self, name: str) -> None:
        calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._calls = calls
        self.stop = weakref.finalize(self, calls.put, None)
        # A daemon: a process that ends with its store open ends as a kill would end it.
        Thread(target=_work_off, args=(calls,), name=name, daemon=True).start()

    def do(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Return what will hold what `work` returns."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._calls.put(_Call(work, done, loop))
        return done


def _work_off(calls: SimpleQueue[_Call | None]) -> None:
    while (call := calls.get()) is not None:
        call.make()
        del call  # or it would be kept until the next one comes


def _settle(done: asyncio.Future[Any], result: object, failure: BaseException | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(result)
    else:
        done.set_exception(failure)
