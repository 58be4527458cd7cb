"""`hostler explain`: why something is as it is, what it waits for, and what happens next."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import OutputFormat, OutputOption, say_data
from hostler.cli.remote import Remote
from hostler.cli.terminal import is_colourful, say


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "explain",
        panel=panels.LOOK,
        examples="""
        hostler explain live-channel/encoder/0
        hostler explain pending
        hostler explain live-channel/encoder/0 --node n-000002
        hostler explain live-channel/encoder/0 --if uncordon=n-000002
        hostler explain live-channel/encoder/0 --at 4711
        hostler explain live-channel/encoder/0 --at rev:1234 --if without=a-000007
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
            " by itself. Or `pending`, for everything that waits.",
        ),
    ],
    output: OutputOption = OutputFormat.TABLE,
    *,
    node: Annotated[
        str | None,
        typer.Option(
            "--node",
            metavar="NODE",
            help="Of a replica: all that keeps it from this node and the smallest change that"
            " would mend it, or why another node is better.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="EVENT|rev:N",
            help="Of a replica: make the decision of a past step again, with the fleet as it was."
            " The step that told an event (its number in `hostler events`), or a revision.",
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--if",
            metavar="FACT",
            help="Of a replica: decide also with this fact altered, such as uncordon=NODE,"
            " empty=NODE, without=ALLOCATION, exclusions=none, prefer=zone or capacity=6."
            " May be given more than once.",
        ),
    ] = None,
) -> None:
    """Say why something is as it is, what it waits for, and what comes next.

    Every "not now" has a reason with a name. For a replica it shows the last placement decision:
    which nodes were looked at, which filter refused each, and how the others compared.
    `pending` groups all that waits by what it asks for, and says what would help.
    """
    from hostler.cli.explanations import explained, fetch

    if about == ["pending"]:
        if node is not None or at is not None or given:
            raise CommandError(
                "--node, --at and --if go with the id of a replica", code=ExitCode.BAD_INPUT
            )
        _say_pending(remote, output)
        return
    view = fetch(remote.client, _about(about), node, given=given or (), **_moment(at))
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data(view, output)
        return
    for line in explained(view):
        say(line)


def _say_pending(remote: Remote, output: OutputFormat) -> None:
    from hostler.cli.remote import now_ms
    from hostler.cli.waiting import waiting

    view = remote.client.pending()
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data(view, output)
        return
    is_wide, is_colour = output is OutputFormat.WIDE, is_colourful(sys.stdout)
    for line in waiting(view, now_ms=now_ms(), is_wide=is_wide, is_colour=is_colour):
        say(line)


def _moment(at: str | None) -> dict[str, int]:
    """Read `4711` as an event's position and `rev:1234` as a revision."""
    if at is None:
        return {}
    number = at.removeprefix("rev:")
    if not (number.isascii() and number.isdigit()):
        raise CommandError(
            f"--at takes the number of an event or rev:N, not {at!r}", code=ExitCode.BAD_INPUT
        )
    return {"at_revision" if at.startswith("rev:") else "at_event": int(number)}


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
