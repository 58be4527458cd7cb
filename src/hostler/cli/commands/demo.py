"""`hostler demo`: the main job from end to end, in a minute, on one machine."""

from __future__ import annotations

from typing import Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command


def register(app: typer.Typer) -> None:
    """Add `hostler demo`."""
    command(
        app,
        "demo",
        panel=panels.START,
        examples="""
        hostler demo
        hostler demo --json | jq .recovered_ms
        hostler demo --keep
        """,
    )(demo)


def demo(
    *,
    is_json: Annotated[
        bool, typer.Option("--json", help="Print only the summary, as JSON.")
    ] = False,
    is_kept: Annotated[
        bool, typer.Option("--keep", help="Leave everything running at the end, to look around.")
    ] = False,
) -> None:
    """Keep real video on air through a killed node and a killed server, and count what is lost.

    Starts a server, two boxes and a few local machines in a temporary folder, puts a live channel
    with primary and backup on them, leases a warm machine, and then breaks things. It takes about
    a minute, ends with a table, and leaves nothing behind. The exit code is 0 when everything held.
    """
    from hostler.cli.demo.run import run_demo

    raise typer.Exit(run_demo(is_json=is_json, is_kept=is_kept))
