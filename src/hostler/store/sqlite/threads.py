"""The store's two threads: SQLite waits for disks, and the event loop must not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """One thread that writes and one that reads; each does its work in the order of the calls.

    A call whose caller is cancelled is finished all the same, unless it has not begun.
    """

    def __init__(self) -> None:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="store-reader")

    async def on_writer(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` returns on the writing thread."""
        return await _on(self._writer, partial(work, *args, **kwargs))

    async def on_reader(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` returns on the reading thread."""
        return await _on(self._reader, partial(work, *args, **kwargs))

    def stop(self) -> None:
        """End both once they have nothing left to do."""
        self._writer.shutdown(wait=False)
        self._reader.shutdown(wait=False)


async def _on(thread: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(thread, work)
