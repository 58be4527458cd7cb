"""Runs the core: gives it what happened, has what it decides done, wakes it when it is time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from hostler.agent.clock import Clock
from hostler.agent.core.effects import Effect, Exit
from hostler.agent.core.inputs import Input
from hostler.agent.core.state import AgentSettings, AgentState
from hostler.agent.core.step import step
from hostler.base.errors import Defect

WAIT_S_MAX: Final = 1.0
"""Longest wait between two looks at the clock. Timers stand still while the machine sleeps, the
clock that authority is measured by does not."""


class CoreLoop:
    """One life of an agent's core.

    Attributes:
        settings: What the agent was started with.
        clock: By which it measures.
    """

    def __init__(self, settings: AgentSettings, perform: Callable[[Effect], None]) -> None:
        self.settings = settings
        self.clock = Clock()
        self._state = AgentState(settings=settings)
        self._perform = perform
        self._inputs: list[Input] = []
        self._woken = asyncio.Event()
        self._exit: Exit | None = None
        self._failure: BaseException | None = None

    def post(self, happened: Input) -> None:
        """Have the core know about something soon."""
        self._inputs.append(happened)
        self._woken.set()

    def end(self, how: Exit) -> None:
        """Let `run` return."""
        self._exit = how

    def fail(self, failure: BaseException) -> None:
        """Let `run` raise: a part of the agent has failed."""
        self._failure = failure
        self._woken.set()

    async def run(self) -> Exit:
        """Live until the core says that it is over.

        Raises:
            Defect: A part of the agent has failed.
        """
        while self._exit is None:
            await self._turn()
        return self._exit

    async def _turn(self) -> None:
        if self._failure is not None:
            raise Defect("agent_task_failed", "a part of the agent failed") from self._failure
        self._woken.clear()
        inputs, self._inputs = self._inputs, []
        answer = step(self._state, inputs, self.clock.now_ms())
        for effect in answer.effects:
            self._perform(effect)
        if self._exit is not None or self._inputs:
            return
        wait_s = WAIT_S_MAX
        if answer.next_wake_at_ms is not None:
            wait_s = min(wait_s, max(0, answer.next_wake_at_ms - self.clock.now_ms()) / 1_000)
        try:
            await asyncio.wait_for(self._woken.wait(), wait_s)
        except TimeoutError:
            return
