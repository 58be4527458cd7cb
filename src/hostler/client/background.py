"""An event loop in a thread of its own, for those who block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from hostler.base.errors import Rejected

T = TypeVar("T")


class BackgroundLoop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._unfinished: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="hostler-client", daemon=True
        )
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something on the loop and wait for it; an interrupt cancels it there.

        Raises:
            Rejected: The loop has been stopped.
        """
        if self._loop.is_closed():
            work.close()
            raise Rejected("client_closed", "this client is closed; make another")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Take from an asynchronous iterator, and close it at the end."""
        # An interrupt cancels `take`, which ends a little later; only then may it be closed.
        turn = asyncio.Lock()

        async def take() -> tuple[bool, T | None]:
            async with turn:
                async for item in source:
                    return True, item
                return False, None

        async def finish() -> None:
            close = getattr(source, "aclose", None)
            async with turn:
                if close is not None:
                    await close()

        self._unfinished.append(finish)
        try:
            while True:
                there, item = self.run(take())
                if not there or item is None:
                    return
                yield item
        finally:
            self._finish(finish)

    def _finish(self, finish: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Close an iteration, unless the end of all has done it."""
        if finish in self._unfinished:
            self._unfinished.remove(finish)
            self.run(finish())

    def close_iterations(self) -> None:
        """Close what was left in the middle of an iteration, such as by an error of its user."""
        for finish in list(self._unfinished):
            self._finish(finish)

    async def _wind_up(self) -> None:
        """End what still runs, as `asyncio.run` does at its end."""
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await self._loop.shutdown_asyncgens()

    def stop(self) -> None:
        """End the thread."""
        self.run(self._wind_up())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
