"""The `hostler` command: its groups, in the order in which a newcomer needs them."""

from __future__ import annotations

import os
import sys
from typing import Final

import typer

from hostler.cli.command import SETTINGS
from hostler.cli.commands import (
    agent,
    apply,
    backup,
    bundles,
    config,
    demo,
    describe,
    events,
    explain,
    get,
    lease,
    logs,
    maintenance,
    nodes,
    pool,
    providers,
    rollout,
    run,
    server,
    shell,
    status,
    token,
)

app: Final = typer.Typer(
    name="hostler",
    help="Keeps warm machines ready, leases them in milliseconds, places long-lived jobs, and never"
    " forgets a machine that somebody pays for.",
    invoke_without_command=True,
    add_completion=False,
    context_settings=SETTINGS,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

for part in (
    *(demo, server, agent, apply, bundles, rollout, run, lease),
    *(status, get, describe, explain, logs, events),
    *(nodes, maintenance, pool, config, providers, token, backup, shell),
):
    part.register(app)


@app.callback(epilog="Begin with [bold]hostler demo[/bold], which shows everything at once.")
def root(context: typer.Context) -> None:
    """Show what there is when nothing is asked for."""
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help().rstrip() + "\n")


def main() -> None:
    """Run the command line of this process."""
    if shell.COMPLETE_VARIABLE in os.environ:
        shell.prepare_completion()
    app(sys.argv[1:], prog_name="hostler")
