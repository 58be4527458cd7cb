"""`hostler pool`: looking after the growth of pools."""

from __future__ import annotations

from typing import Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.remote import Remote
from hostler.cli.terminal import say

_group = typer.Typer(no_args_is_help=True, help="Look after the growth of pools.")


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(_group, name="pool", rich_help_panel=panels.CARE)


@command(_group, "retry", examples="hostler pool retry runners")
@remote
def retry(
    remote: Remote,
    name: Annotated[str, typer.Argument(metavar="POOL", help="Where it has been mended.")],
) -> None:
    """Launch again what lately failed: failed boots and pauses are forgotten."""
    remote.client.retry_pool(name)
    say(f"pool/{name} tries again")
