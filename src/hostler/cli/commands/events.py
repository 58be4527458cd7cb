"""`hostler events`: what has happened, and what happens."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.output import OutputFormat, OutputOption
from hostler.cli.remote import Remote

TAIL_COUNT: Final = 50
"""Past events that are shown unless told otherwise: a screen or two."""


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
    from hostler.cli.event_lines import recent_events, say_events

    client = remote.client
    newest_seq = client.status().event_seq
    kinds = kind or ()
    past = recent_events(client, tail, kinds=kinds, about=about, until_seq=newest_seq)
    say_events(past, output)
    if follow:
        following = remote.patient_client.events(after_seq=newest_seq, kinds=kinds, about=about)
        say_events(following, output)
