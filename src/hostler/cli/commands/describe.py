"""`hostler describe`: everything about one thing, and its recent history."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import OutputFormat, OutputOption, say_data
from hostler.cli.remote import Remote
from hostler.cli.terminal import say

HISTORY_COUNT: Final = 20
"""Events shown of a thing's history; `hostler events --about ID` has more."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "describe",
        panel=panels.LOOK,
        examples="""
        hostler describe node n-000001
        hostler describe replica live-channel/encoder/0
        hostler describe bundle live-channel
        hostler describe pool studio
        """,
    )(describe)


@remote
def describe(
    remote: Remote,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="bundle, replica, allocation, node, pool, lease or token."
        ),
    ],
    thing_id: Annotated[str | None, typer.Argument(metavar="ID", help="Which one.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show all that is known about one thing: its fields, what belongs to it, and its history."""
    from hostler.cli.kinds import kind_and_id

    found, wanted_id = kind_and_id(kind, thing_id)
    if wanted_id is None:
        raise CommandError(
            f"say which {found.noun}",
            code=ExitCode.BAD_INPUT,
            hint=f"`hostler get {found.plural}` lists them",
        )
    view = found.fetch(remote.client, wanted_id)
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data(view, output)
        return
    from hostler.cli.descriptions import described

    for line in described(remote.client, view):
        say(line)
    if found.noun != "token":
        _say_history(remote, wanted_id)


def _say_history(remote: Remote, thing_id: str) -> None:
    from hostler.cli.event_lines import event_line, recent_events

    events = recent_events(remote.client, HISTORY_COUNT, about=thing_id)
    say("History:" if events else "History: nothing is remembered")
    for event in events:
        say(f"  {event_line(event)}")
