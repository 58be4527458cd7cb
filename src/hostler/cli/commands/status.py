"""`hostler status`: one look at the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.output import At, Cell, OutputFormat, OutputOption, fields, say_data
from hostler.cli.remote import Remote, now_ms
from hostler.cli.terminal import say

if TYPE_CHECKING:
    from hostler.wire.http import StatusView


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(
        app,
        "status",
        panel=panels.LOOK,
        examples="""
        hostler status
        hostler status -o json
        """,
    )
    @remote
    def status(remote: Remote, output: OutputOption = OutputFormat.TABLE) -> None:
        """Say whether the server answers, who you are to it, and how the fleet is in numbers."""
        view = remote.client.status()
        if output in (OutputFormat.JSON, OutputFormat.YAML):
            say_data(view, output)
            return
        for line in fields(_pairs(view, remote.target.url), now_ms=now_ms()):
            say(line)


def _pairs(view: StatusView, url: str) -> list[tuple[str, Cell]]:
    you = f"{view.principal} ({view.role})"
    return [
        ("Server", f"{url}, version {view.version}"),
        ("Up since", At(view.started_at_ms)),
        ("Fleet", view.fleet_id or "not configured yet"),
        ("You are", f"{you}, without a token: for development" if view.is_development else you),
        ("Revision", view.revision),
        ("Agents connected", view.agent_count),
        ("Nodes", _counts(view.node_count_by_phase)),
        ("Replicas", _counts(view.replica_count_by_phase)),
        ("Allocations", _counts(view.allocation_count_by_phase)),
        ("Leases", f"{view.lease_held_count} held, {view.lease_waiting_count} waiting"),
        ("Commands under way", view.outbox_count),
    ]


def _counts(count_by_phase: dict[str, int]) -> str:
    told = [f"{count} {phase}" for phase, count in count_by_phase.items() if count]
    return ", ".join(told) or "none"
