"""`hostler demo`: the main job from end to end, in a minute, on one machine."""

from __future__ import annotations

from typing import Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command
from hostler.cli.errors import CommandError, ExitCode


def register(app: typer.Typer) -> None:
    """Add `hostler demo`."""
    command(
        app,
        "demo",
        panel=panels.START,
        examples="""
        hostler demo
        hostler demo --json | jq .recovered_ms
        hostler demo --only partition,clock-jump
        hostler demo --keep
        """,
    )(demo)


def demo(
    *,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="CHAPTERS",
            help="Tell these alone, with commas between; an unknown one lists all.",
        ),
    ] = None,
    is_json: Annotated[
        bool, typer.Option("--json", help="Print only the summary, as JSON.")
    ] = False,
    is_kept: Annotated[
        bool, typer.Option("--keep", help="Leave everything running at the end, to look around.")
    ] = False,
) -> None:
    """Keep real video on air through whatever may befall a fleet, and count what is lost.

    Starts a server, two boxes and a few local machines in a temporary folder, puts a live channel
    with primary and backup on them, leases a warm machine, and then breaks things: a cable is
    pulled, a machine dies, one refuses work, one is called back, clocks jump, the server is killed,
    everything is killed at once. It takes about a minute, ends with a table, and leaves nothing
    behind. The exit code is 0 when everything held.
    """
    from hostler.cli.demo.run import run_demo

    raise typer.Exit(run_demo(_chapters(only), is_json=is_json, is_kept=is_kept))


def _chapters(only: str | None) -> list[str]:
    """Return the chapters that were asked for; all of them when none was named."""
    from hostler.cli.demo.story import CHAPTERS

    if only is None:
        return list(CHAPTERS)
    asked = [name for name in (part.strip() for part in only.split(",")) if name]
    unknown = [name for name in asked if name not in CHAPTERS]
    if unknown or not asked:
        raise CommandError(
            f"--only: there is no chapter {', '.join(unknown)!r}" if unknown else "--only is empty",
            code=ExitCode.BAD_INPUT,
            hint=f"chapters are {', '.join(CHAPTERS)}",
        )
    return asked
