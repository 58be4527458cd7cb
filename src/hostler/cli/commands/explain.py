"""`hostler explain`: why something is as it is, what it waits for, and what happens next."""

from __future__ import annotations

from typing import Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import OutputFormat, OutputOption, say_data
from hostler.cli.remote import Remote
from hostler.cli.terminal import say


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "explain",
        panel=panels.LOOK,
        examples="""
        hostler explain live-channel/encoder/0
        hostler explain live-channel/encoder/0 --node n-000002
        hostler explain node n-000001
        hostler explain lease l-000004
        """,
    )(explain)


@remote
def explain(
    remote: Remote,
    about: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND] ID",
            help="The id of a replica, allocation, node, lease, bundle or pool; the kind is found"
            " by itself.",
        ),
    ],
    output: OutputOption = OutputFormat.TABLE,
    *,
    node: Annotated[
        str | None,
        typer.Option("--node", metavar="NODE", help="All that keeps a replica from it."),
    ] = None,
) -> None:
    """Say why something is as it is, what it waits for, and what comes next.

    Every "not now" has a reason with a name. For a replica it shows the last placement decision:
    which nodes were looked at, which filter refused each, and how the others compared.
    """
    from hostler.cli.explanations import explained, fetch

    view = fetch(remote.client, _about(about), node)
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data(view, output)
        return
    for line in explained(view):
        say(line)


def _about(words: list[str]) -> str:
    """Take `node n-000001`, `node/n-000001` and `n-000001` alike."""
    from hostler.cli.kinds import KIND_BY_NAME, kind_named

    match words:
        case [kind, thing_id]:
            kind_named(kind)
            return thing_id
        case [word]:
            noun, slash, rest = word.partition("/")
            # A bundle may be called `node`; three parts are a replica's id.
            is_named = slash and noun in KIND_BY_NAME
            return rest if is_named and ("/" not in rest or noun in ("replica", "r")) else word
        case _:
            raise CommandError("one thing at a time: [KIND] ID", code=ExitCode.BAD_INPUT)
