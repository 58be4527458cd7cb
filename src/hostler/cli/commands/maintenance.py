"""`hostler maintenance`: have nodes empty while people work on their machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import OutputFormat, OutputOption
from hostler.cli.remote import Remote
from hostler.cli.terminal import say

if TYPE_CHECKING:
    from hostler.wire.documents import MaintenanceDocument

_group = typer.Typer(
    no_args_is_help=True, help="Have nodes empty while people work on their machines."
)

_LABEL: Final = "NAME=VALUE"


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(_group, name="maintenance", rich_help_panel=panels.CARE)


@command(
    _group,
    "add",
    examples="""
    hostler maintenance add kernel --node n-000003 --start 2026-12-02T02:00 --stop 2026-12-02T04:00
    hostler maintenance add rack-7 --label rack=7 --start 2026-12-02T02:00 --stop 2026-12-02T06:00
    hostler maintenance add n3 --node n-000003 --start 2026-12-02T02:00 --stop 2026-12-02T03:00 \\
      --time-zone Europe/Berlin --lead 30m --reason "new switch"
    hostler maintenance add -f every-sunday.yaml
    """,
)
@remote
def add(
    remote: Remote,
    name: Annotated[str | None, typer.Argument(help="How it is called from now on.")] = None,
    *,
    node: Annotated[list[str] | None, typer.Option(help="A node's id; repeatable.")] = None,
    pool: Annotated[list[str] | None, typer.Option(help="A pool; repeatable.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar=_LABEL, help="Nodes that have all of these; repeatable."),
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it begins: 2026-12-02T02:00.")
    ] = None,
    stop: Annotated[
        str | None, typer.Option(metavar="TIME", help="When it ends, on the same clock.")
    ] = None,
    time_zone: Annotated[str, typer.Option(help="Whose wall clock that is.")] = "UTC",
    lead: Annotated[
        str, typer.Option(metavar="DURATION", help="How long before that nodes begin to empty.")
    ] = "15m",
    force: Annotated[
        bool, typer.Option("--force", help="Stop at its beginning what has no other place.")
    ] = False,
    reason: Annotated[str, typer.Option(help="For people.")] = "",
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="One entry of `fleet.maintenance`, instead of options."),
    ] = None,
) -> None:
    """Plan a maintenance besides those of hostler.yaml; a file may say windows that recur.

    The nodes are empty when it begins and open again after it. What does not recur is forgotten
    when it is over; `hostler maintenance remove` calls it off.
    """
    from hostler.cli.documents import name_of, read_text
    from hostler.wire.documents import read_maintenance

    if file is not None:
        if name is not None or node or pool or label or start or stop:
            raise CommandError("give -f FILE or options, not both", code=ExitCode.BAD_INPUT)
        document = read_maintenance(read_text(file), name_of(file)).require()
    else:
        document = _document(
            {
                "name": name,
                "nodes": node or [],
                "pools": pool or [],
                "labels": _labels(label or []),
                "start": start,
                "stop": stop,
                "time_zone": time_zone,
                "lead": lead,
                "force": force,
                "reason": reason,
            }
        )
    view = remote.client.add_maintenance(document)
    say(f"maintenance/{view.name} is planned from {view.from_local} to {view.to_local}")


@command(_group, "list", examples="hostler maintenance list -o wide")
@remote
def list_(remote: Remote, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show what is planned, the soonest first; the same as `hostler get maintenance`."""
    from hostler.cli.kinds import MAINTENANCE
    from hostler.cli.listing import say_list

    say_list(remote.client.maintenance(), MAINTENANCE, output)


@command(_group, "remove", examples="hostler maintenance remove kernel")
@remote
def remove(
    remote: Remote,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which one.")],
) -> None:
    """Call off a maintenance that was added; nodes that are closed for it are open again."""
    remote.client.remove_maintenance(name)
    say(f"maintenance/{name} is called off")


def _labels(texts: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, value in pairs:
        if not name or not equals:
            told = f"--label {name}{equals}{value}: say {_LABEL}"
            raise CommandError(told, code=ExitCode.BAD_INPUT)
    return {name: value for name, _, value in pairs}


def _document(given: dict[str, Any]) -> MaintenanceDocument:
    from hostler.wire.documents import MaintenanceDocument, check_value

    return check_value(
        {key: value for key, value in given.items() if value is not None}, MaintenanceDocument
    ).require()
