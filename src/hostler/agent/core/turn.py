"""One run of the agent's core: collects effects and the next wake-up."""

from __future__ import annotations

from typing import Literal

import msgspec

from hostler.agent.core.effects import Effect, SendMessage
from hostler.agent.core.limits import TOMBSTONES_MAX
from hostler.agent.core.state import AgentState
from hostler.wire.agent import AgentMessage, CommandAnswered


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a step wants done."""

    effects: list[Effect]
    """To be carried out in this order."""
    next_wake_at_ms: int | None
    """When to run again though nothing happened; `None` is never."""


class Turn:
    """The state, the time, and what has been decided so far."""

    def __init__(self, state: AgentState, now_ms: int) -> None:
        self.state = state
        self.now_ms = now_ms
        self._effects: list[Effect] = []
        self._wake_at_ms: int | None = None

    def do(self, effect: Effect) -> None:
        """Have the shell do this, after what was asked for before."""
        self._effects.append(effect)

    def send(self, message: AgentMessage) -> None:
        """Tell the server."""
        self.do(SendMessage(message=message))

    def answer(
        self,
        command_id: str,
        outcome: Literal["done", "refused"] = "done",
        code: str = "",
        message: str = "",
    ) -> None:
        """Settle a command; the answer goes out after this turn's reports."""
        self.state.answers.append(
            CommandAnswered(command_id=command_id, outcome=outcome, code=code, message=message)
        )

    def is_due(self, at_ms: int) -> bool:
        """Say whether the instant has come; if not, wake up at it."""
        if self.now_ms >= at_ms:
            return True
        if self._wake_at_ms is None or at_ms < self._wake_at_ms:
            self._wake_at_ms = at_ms
        return False

    def finished(self) -> Answer:
        """Give what was decided."""
        return Answer(effects=self._effects, next_wake_at_ms=self._wake_at_ms)


def bury(tombstones: dict[str, int], name: str, epoch: int) -> None:
    """Remember the highest ended epoch of a thing; the oldest memory makes room."""
    highest = max(epoch, tombstones.pop(name, 0))
    tombstones[name] = highest
    while len(tombstones) > TOMBSTONES_MAX:
        del tombstones[next(iter(tombstones))]
