"""`hostler config`: check a configuration before a server does, and describe it to editors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command, group
from hostler.cli.output import counted
from hostler.cli.terminal import say


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(_group, name="config", rich_help_panel=panels.SETTINGS)


_group = group("Check hostler.yaml, or print its JSON Schema.")


@command(
    _group,
    "check",
    examples="""
    hostler config check hostler.yaml
    hostler config check < hostler.yaml
    """,
)
def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="hostler.yaml; - is standard input.")
    ] = Path("-"),
) -> None:
    """Check a configuration whole, and tell every error with its line.

    What only a server knows, such as whether a provider's credentials are good, is not checked.
    """
    from hostler.cli.documents import name_of, read_text
    from hostler.wire.documents import read_config

    document = read_config(read_text(file), name_of(file)).require()
    tiers = sum(len(pool.tiers) for pool in document.pools.values())
    say(
        f"{name_of(file)} is good: {counted(len(document.pools), 'pool')}, {counted(tiers, 'tier')}"
    )


@command(
    _group,
    "schema",
    examples="""
    hostler config schema > hostler.schema.json
    hostler config schema --bundle > bundle.schema.json
    """,
)
def schema(
    *,
    bundle: Annotated[
        bool, typer.Option("--bundle", help="The schema of a bundle instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of hostler.yaml, for editors that complete and check as you type.

    With the YAML language server, put this on the file's first line:
    # yaml-language-server: $schema=hostler.schema.json
    """
    import json

    from hostler.wire.documents import bundle_schema, config_schema

    document = bundle_schema() if bundle else config_schema()
    say(json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False))
