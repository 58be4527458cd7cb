"""The three kinds of error, and the assertion that stays on in production.

`Rejected` is about the request, `Failed` is about the world, `Defect` is about us. Who catches one
knows from its kind alone what to do next: tell the caller, try again later, or stop and recover.
"""

from __future__ import annotations

from typing import Literal

Effect = Literal["none", "done", "unknown"]


class HostlerError(Exception):
    """Root of every error that Hostler raises on purpose.

    Attributes:
        code: Stable identifier in lower case with underscores; programs branch on it.
        message: One sentence for people, lower case, no full stop; values go in `fields`.
        fields: The values the message speaks of.
    """

    def __init__(self, code: str, message: str, **fields: object) -> None:
        self.code = code
        self.message = message
        self.fields = fields
        super().__init__(message)

    def __str__(self) -> str:
        """Give the message with its fields, for logs and command lines."""
        if not self.fields:
            return self.message
        told = ", ".join(f"{name}={value}" for name, value in self.fields.items())
        return f"{self.message} ({told})"


class Rejected(HostlerError):
    """The request cannot be accepted as it stands; the caller must change it."""


class Failed(HostlerError):
    """The world did not cooperate.

    Attributes:
        effect: What is known about the effect: `none`, `done` or `unknown`.
        retry_after_ms: Least wait before trying again makes sense; `None` when nobody said.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        effect: Effect = "none",
        retry_after_ms: int | None = None,
        **fields: object,
    ) -> None:
        self.effect = effect
        self.retry_after_ms = retry_after_ms
        super().__init__(code, message, **fields)


class Defect(HostlerError):
    """An invariant of ours does not hold; the process stops and recovers from the store."""


def check(condition: object, code: str, message: str, **fields: object) -> None:
    """Assert something that must hold, also under `python -O`.

    Raises:
        Defect: The condition is false; nobody but the process's edge should catch it.
    """
    if not condition:
        raise Defect(code, message, **fields)
