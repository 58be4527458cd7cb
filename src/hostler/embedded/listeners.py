"""Listeners: functions that are told what has happened, and can neither hold it up nor break it.

An event is committed before anybody hears of it, and each listener takes events at its own pace
from where they are kept, so none of them needs a queue. One that raises is logged and told the next
event. A function may block, as it is called in a thread; a coroutine must not, as everywhere.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from hostler.base.errors import HostlerError, Rejected
from hostler.client.errors import ClientError
from hostler.client.streams import EventStream
from hostler.client.transport import Transport
from hostler.core.events import EventKind
from hostler.wire.http import EventView

_log = structlog.get_logger(__name__)

Listener = Callable[[EventView], Awaitable[None] | None]

_KINDS: Final = tuple(EventKind)


class Listening:
    """One listener and its place in the stream of events.

    Attributes:
        failure_count: Events on which it raised.
        skipped_count: Events that it never got: it was slower than `retention.events_max` allows.
    """

    def __init__(
        self,
        transport: Transport,
        listener: Listener,
        *,
        kinds: Sequence[str],
        about: str,
        after_seq: int,
    ) -> None:
        """Begin to listen.

        Raises:
            Rejected: There is no such kind of event.
        """
        self.failure_count = 0
        self.skipped_count = 0
        self._transport = transport
        self._listener = listener
        self._kinds = [_known(kind) for kind in kinds]
        self._about = about
        self._position = after_seq
        # A thread of its own: one that blocks for ever takes nobody else's.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hostler-listener")
        self._task = asyncio.create_task(self._listen())

    @property
    def position(self) -> int:
        """Position of the last event that the listener was told, or that it did not ask for."""
        return self._position

    async def close(self) -> None:
        """Tell it nothing more; `position` is where it was. May be repeated."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _listen(self) -> None:
        try:
            while True:
                try:
                    await self._follow()
                except ClientError as error:
                    if error.code != "events_gone":
                        raise
                    self._skip(int(error.problem.fields["oldest_seq"] or 0))
        except HostlerError as error:
            _log.info("listener_ends", why=str(error))

    def _skip(self, oldest_seq: int) -> None:
        """Go on with the oldest event that is kept."""
        self.skipped_count += oldest_seq - 1 - self._position
        _log.warning("listener_too_slow", after_seq=self._position, oldest_seq=oldest_seq)
        self._position = oldest_seq - 1

    async def _follow(self) -> None:
        stream = EventStream(
            self._transport,
            after_seq=self._position,
            tail=0,
            kinds=self._kinds,
            about=self._about,
            follow=True,
        )
        async for event in stream:
            await self._tell(event)
            self._position = event.seq

    async def _tell(self, event: EventView) -> None:
        try:
            if inspect.iscoroutinefunction(self._listener):
                await self._listener(event)
                return
            calling = asyncio.get_running_loop().run_in_executor(
                self._thread, self._listener, event
            )
            if (more := await calling) is not None:
                await more
        except Exception:  # noqa: BLE001 - see CATCHES_EVERYTHING in tests/tidy/test_habits.py
            # It is somebody else's function: its defect is theirs, and the next event may do.
            self.failure_count += 1
            _log.exception("listener_failed", kind=event.kind, seq=event.seq)


def _known(kind: str) -> str:
    if kind not in _KINDS:
        near = difflib.get_close_matches(kind, _KINDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise Rejected("event_kind_unknown", f"there is no kind of event {kind!r}{hint}")
    return kind
