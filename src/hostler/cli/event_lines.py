"""Events as people read them, one line each, and as programs do."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from hostler.base.units import format_duration
from hostler.cli.output import OutputFormat, say_data
from hostler.cli.terminal import Style, is_colourful, painted, say, shown

if TYPE_CHECKING:
    from hostler.client import SyncClient
    from hostler.wire.http import EventView

SEARCHED_COUNT: Final = 10_000
"""How far back events about one thing are looked for: as far as the API goes in one request."""

_BAD_WORDS: Final = (
    "lost",
    "failed",
    "broken",
    "dropped",
    "orphan",
    "refused",
    "given_up",
    "held_back",
)


def recent_events(
    client: SyncClient,
    count: int,
    *,
    kinds: Sequence[str] = (),
    about: str = "",
    until_seq: int | None = None,
) -> list[EventView]:
    """Return the last events that a filter takes, oldest first, up to a position (inclusive)."""
    has_filter = bool(kinds or about)
    found = client.events(
        tail=SEARCHED_COUNT if has_filter else count, kinds=kinds, about=about, follow=False
    )
    return list(
        deque((one for one in found if until_seq is None or one.seq <= until_seq), maxlen=count)
    )


def say_events(events: Iterable[EventView], output: OutputFormat) -> None:
    """Write events as they come: a line each, or JSON or YAML."""
    is_colour = is_colourful(sys.stdout)
    for event in events:
        match output:
            case OutputFormat.JSON:
                say(msgspec.json.encode(event).decode())
            case OutputFormat.YAML:
                say("---")
                say_data(event, output)
            case OutputFormat.NAME:
                say(f"event/{event.seq}")
            case OutputFormat.TABLE | OutputFormat.WIDE:
                is_wide = output is OutputFormat.WIDE
                say(event_line(event, is_wide=is_wide, is_colour=is_colour))
        sys.stdout.flush()


def event_line(
    event: EventView, *, is_wide: bool = False, has_day: bool = False, is_colour: bool = False
) -> str:
    """Write an event on one line: when, what, about what, and what is to be said of it."""
    format_ = "%Y-%m-%d %H:%M:%S" if is_wide or has_day else "%H:%M:%S"
    when = time.strftime(format_, time.localtime(event.at_ms / 1_000))
    style = Style.BAD if any(word in event.kind for word in _BAD_WORDS) else None
    kind = painted(event.kind.ljust(24), style, is_colour=is_colour)
    about = " ".join(dict.fromkeys(event.about.values()))
    data = " ".join(
        told(name, value) for name, value in event.data.items() if value not in (None, "")
    )
    position = f"{event.seq:>8}  " if is_wide else ""
    return f"{position}{when}  {kind}  {shown(about)}  {shown(data)}".rstrip()


def told(name: str, value: str | int | bool | None) -> str:  # noqa: FBT001 - any value of an event
    """Write one value of an event: instants as times, durations in their units, words in quotes."""
    match value:
        case bool():
            return f"{name}={str(value).lower()}"
        case int() if name.endswith("_at_ms"):
            when = time.strftime("%H:%M:%S", time.localtime(value / 1_000))
            return f"{name.removesuffix('_ms')}={when}"
        case int() if name.endswith("_ms"):
            return f"{name.removesuffix('_ms')}={format_duration(value)}"
        case _:
            text = str(value)
            return f'{name}="{text}"' if " " in text else f"{name}={text}"
