"""What the cloud of a trial answers instead of what is so."""

from __future__ import annotations

from collections.abc import Callable

from hostler.core.inputs import CommandFailed, Outcome
from hostler.model.command import LaunchMachine, ProviderCommand

Answers = Callable[[ProviderCommand], Outcome | None]


def failure(code: str, *, retry_after_ms: int | None = None, message: str = "made up") -> Outcome:
    """Return an answer that fails."""
    return CommandFailed(code=code, message=message, retry_after_ms=retry_after_ms)


def fail_all(code: str) -> Answers:
    """Let every call fail."""
    return lambda _: failure(code)


def fail_launches(
    code: str,
    *,
    offer: str = "",
    tier: str = "",
    pool: str = "",
    retry_after_ms: int | None = None,
    message: str = "made up",
) -> Answers:
    """Let launches fail, all or those of one offer, tier or pool."""

    def answer(command: ProviderCommand) -> Outcome | None:
        if not isinstance(command, LaunchMachine):
            return None
        for asked, of in ((offer, command.offer), (tier, command.tier), (pool, command.pool)):
            if asked and asked != of:
                return None
        return failure(code, retry_after_ms=retry_after_ms, message=message)

    return answer


def fail_the_first(count: int, code: str) -> Answers:
    """Let so many launches fail, and then none."""
    left = [count]

    def answer(command: ProviderCommand) -> Outcome | None:
        if not isinstance(command, LaunchMachine) or not left[0]:
            return None
        left[0] -= 1
        return failure(code)

    return answer
