"""`hostler events`: what has happened, and what happens."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.output import OutputFormat, OutputOption, say_data
from hostler.cli.remote import Remote
from hostler.cli.terminal import Style, is_colourful, painted, say, shown

if TYPE_CHECKING:
    from hostler.wire.http import EventView

TAIL_COUNT: Final = 50
"""Past events that are shown unless told otherwise: a screen or two."""

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


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "events",
        panel=panels.LOOK,
        examples="""
        hostler events -f
        hostler events --about n-000001
        hostler events -f --kind node_lost --kind replica_recovering
        hostler events --tail 1000 -o json
        """,
    )(events)


@remote
def events(
    remote: Remote,
    output: OutputOption = OutputFormat.TABLE,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they happen.")] = False,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Only these, such as node_lost; repeatable.")
    ] = None,
    about: Annotated[
        str, typer.Option("--about", metavar="ID", help="Only about this node, replica, lease, ...")
    ] = "",
    tail: Annotated[
        int, typer.Option("--tail", min=0, help="How many past ones to begin with.")
    ] = TAIL_COUNT,
) -> None:
    """Show committed facts in their one order: what was done, to what, and why.

    A stream that is cut goes on where it was, without loss or repeat.
    """
    client = remote.client
    if follow:
        client.status()  # a server that is not there is told at once
        client = remote.patient_client
    say_events(client.events(tail=tail, kinds=kind or (), about=about, follow=follow), output)


def say_events(events: Iterable[EventView], output: OutputFormat) -> None:
    """Write events as they come: a line each, or JSON or YAML."""
    import msgspec

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


def event_line(event: EventView, *, is_wide: bool = False, is_colour: bool = False) -> str:
    """Write an event on one line: when, what, about what, and what is to be said of it."""
    format_ = "%Y-%m-%d %H:%M:%S" if is_wide else "%H:%M:%S"
    when = time.strftime(format_, time.localtime(event.at_ms / 1_000))
    style = Style.BAD if any(word in event.kind for word in _BAD_WORDS) else None
    kind = painted(event.kind.ljust(24), style, is_colour=is_colour)
    about = " ".join(dict.fromkeys(event.about.values()))
    data = " ".join(
        f"{name}={_quoted(str(value).lower() if isinstance(value, bool) else str(value))}"
        for name, value in event.data.items()
        if value not in (None, "")
    )
    position = f"{event.seq:>8}  " if is_wide else ""
    return f"{position}{when}  {kind}  {shown(about)}  {shown(data)}".rstrip()


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text else text
