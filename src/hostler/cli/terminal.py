"""What a terminal shows: colour only where somebody looks, and nothing that could steer it.

Text that comes from nodes and jobs (host names, messages) is shown, never obeyed: control
characters become question marks before they reach a terminal.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import Final, TextIO

_RESET: Final = "\x1b[0m"


class Style(StrEnum):
    """The few ways in which a word stands out; the value is its escape sequence."""

    GOOD = "\x1b[32m"
    BUSY = "\x1b[33m"
    BAD = "\x1b[31m"
    FAINT = "\x1b[2m"
    STRONG = "\x1b[1m"


_STYLE_BY_WORD: Final = {
    **dict.fromkeys(
        ("ready", "live", "placed", "held", "healthy", "active", "running"), Style.GOOD
    ),
    **dict.fromkeys(
        (
            *("requested", "reserved", "start_sent", "starting", "pending", "waiting"),
            *("backing_off", "unready", "suspect", "draining", "stopping", "deleting"),
        ),
        Style.BUSY,
    ),
    **dict.fromkeys(
        ("broken", "dropped", "lost", "refused", "poison", "expired", "revoked", "node_lost"),
        Style.BAD,
    ),
    **dict.fromkeys(("retired", "ended", "settled", "dormant", "deleted"), Style.FAINT),
}


def is_colourful(stream: TextIO) -> bool:
    """Say whether colour belongs on a stream (https://no-color.org, seen 2026-11)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def painted(text: str, style: Style | None, *, is_colour: bool) -> str:
    """Wrap a text in a style, where there is one."""
    return f"{style}{text}{_RESET}" if style and is_colour else text


def style_of(word: str) -> Style | None:
    """Return how a phase, health or outcome stands out; compound cells go by their first word."""
    return _STYLE_BY_WORD.get(word.split(" ", maxsplit=1)[0])


def shown(text: str) -> str:
    """Return one line of text without anything that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else " " if one.isspace() else "?" for one in text)


def say(line: str = "") -> None:
    """Write a line to standard output."""
    sys.stdout.write(line + "\n")


def note(line: str) -> None:
    """Write a line for the person at the terminal: standard error, so that pipes stay clean."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
