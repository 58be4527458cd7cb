"""Lanes: calls to the outside, each target on its own, so many at once, each with a deadline.

A lane belongs to one provider or one agent, so that one that hangs holds up nobody else. A command
is in its lane once: while an attempt is under way another one joins it or takes its place.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One attempt at one command.

    Attributes:
        name: The command's id.
        make: Makes the call and deals with whatever comes of it; is cancelled never but at the end.
        is_superseding: True: an attempt under way is given up for this one, because what it waits
            for may be gone; false: this one joins it.
    """

    name: str
    make: Callable[[], Awaitable[None]]
    is_superseding: bool


class Lane:
    """The calls to one target."""

    def __init__(self, call_count_max: int) -> None:
        self._call_count_max = call_count_max
        self._waiting: OrderedDict[str, Call] = OrderedDict()
        self._running: dict[str, asyncio.Task[None]] = {}

    @property
    def is_empty(self) -> bool:
        """True when nothing waits or runs."""
        return not self._waiting and not self._running

    def add(self, call: Call, on_end: Callable[[asyncio.Task[None]], None]) -> None:
        """Make a call now or when its turn comes."""
        running = self._running.get(call.name)
        if running is not None:
            if not call.is_superseding:
                return
            running.cancel()
            del self._running[call.name]
        self._waiting[call.name] = call
        self._start(on_end)

    def _start(self, on_end: Callable[[asyncio.Task[None]], None]) -> None:
        while self._waiting and len(self._running) < self._call_count_max:
            name, call = self._waiting.popitem(last=False)
            task = asyncio.ensure_future(call.make())
            self._running[name] = task

            def ended(task: asyncio.Task[None], name: str = name) -> None:
                if self._running.get(name) is task:
                    del self._running[name]
                self._start(on_end)
                on_end(task)

            task.add_done_callback(ended)

    def cancel(self) -> list[asyncio.Task[None]]:
        """Give everything up; return what is still ending."""
        self._waiting.clear()
        for task in self._running.values():
            task.cancel()
        return list(self._running.values())


class Lanes:
    """All lanes, made when needed and forgotten when empty."""

    def __init__(self, on_defect: Callable[[BaseException], None]) -> None:
        self._lanes: dict[str, Lane] = {}
        self._on_defect = on_defect
        self._is_closed = False

    def add(self, target: str, call: Call, *, call_count_max: int) -> None:
        """Make a call on the lane of a target."""
        if self._is_closed:
            return
        lane = self._lanes.get(target)
        if lane is None:
            lane = self._lanes[target] = Lane(call_count_max)
        lane.add(call, lambda task: self._ended(target, lane, task))

    def _ended(self, target: str, lane: Lane, task: asyncio.Task[None]) -> None:
        if lane.is_empty and self._lanes.get(target) is lane:
            del self._lanes[target]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_defect(error)

    async def close(self) -> None:
        """Give everything up and wait until it has ended."""
        self._is_closed = True
        tasks = [task for lane in self._lanes.values() for task in lane.cancel()]
        await asyncio.gather(*tasks, return_exceptions=True)
