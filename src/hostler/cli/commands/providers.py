"""`hostler providers`: who can launch machines here, and whether what a tier needs is there."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hostler.cli import panels
from hostler.cli.command import command, group
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import Column, OutputFormat, OutputOption, say_data, say_table
from hostler.cli.terminal import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hostler.providers.registry import InstalledProvider, Registry
    from hostler.wire.documents import ConfigDocument

FLEET_UNKNOWN: Final = "f-check"
"""For a check of a fleet that has no id yet: checks make nothing that would carry it."""


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(_group, name="providers", rich_help_panel=panels.SETTINGS)


_group = group("List the providers that are installed, and check what their tiers need.")


@command(
    _group,
    "list",
    examples="""
    hostler providers list
    hostler providers list -o json
    """,
)
def list_providers(output: OutputOption = OutputFormat.TABLE) -> None:
    """List the providers that are installed here, which can be used, and why not.

    Packages of third parties add theirs by an entry point in the group hostler.providers. Run it
    where the server runs: it looks at its own installation, not at a server.
    """
    with tempfile.TemporaryDirectory(prefix="hostler-") as folder:
        found = _registry(Path(folder)).installed()
    if output is OutputFormat.NAME:
        for one in found:
            say(one.name)
    elif output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data(found, output)
    else:
        say_table(found, _COLUMNS, now_ms=0, is_wide=output is OutputFormat.WIDE)


@command(
    _group,
    "check",
    examples="""
    hostler providers check -f hostler.yaml
    hostler providers check docker -f hostler.yaml -o json
    """,
)
def check(
    name: Annotated[
        str | None, typer.Argument(help="Only tiers of this provider.", show_default=False)
    ] = None,
    *,
    file: Annotated[
        Path, typer.Option("--file", "-f", metavar="FILE", help="The configuration.")
    ] = Path("hostler.yaml"),
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Look whether each tier could launch: credentials, reachability, images. It changes nothing.

    Run it as the server's user, where the server runs. It exits with 1 when something is not good.
    """
    import asyncio

    from hostler.cli.documents import name_of, read_text
    from hostler.wire.documents import read_config

    reading = read_config(read_text(file), name_of(file))
    document = reading.require()
    with tempfile.TemporaryDirectory(prefix="hostler-") as folder:
        registry = _registry(Path(folder))
        _refuse_unknown(document, registry, name)
        found = asyncio.run(_check(document, registry, name))
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data(found, output)
    elif found:
        say_table(found, _CHECK_COLUMNS, now_ms=0, is_wide=output is OutputFormat.WIDE)
    else:
        say("there is nothing to look at")
    if not all(row["is_good"] for row in found):
        raise typer.Exit(ExitCode.FAILED)


def _registry(folder: Path) -> Registry:
    from hostler.engine.clock import SystemClock
    from hostler.providers.registry import Registry

    return Registry(folder, SystemClock())


def _refuse_unknown(document: ConfigDocument, registry: Registry, name: str | None) -> None:
    used = {tier.provider for pool in document.pools.values() for tier in pool.tiers}
    if name is not None and name not in used:
        known = ", ".join(sorted(used - {""})) or "none"
        hint = f"it names {known}; installed are {', '.join(registry.names())}"
        raise CommandError(
            f"no tier of the configuration names the provider {name}",
            code=ExitCode.NOT_FOUND,
            hint=hint,
        )


async def _check(
    document: ConfigDocument, registry: Registry, name: str | None
) -> list[dict[str, Any]]:
    """Let each tier's provider look; a tier that it cannot even read is a row too."""
    from hostler.base.errors import HostlerError

    fleet_id = document.fleet.id or FLEET_UNKNOWN
    rows: list[dict[str, Any]] = []
    for pool_name, pool in document.pools.items():
        for tier in pool.tiers:
            if not tier.provider or name not in (None, tier.provider):
                continue
            place = {"tier": f"{pool_name}/{tier.name}", "provider": tier.provider}
            problems = registry.problems_of(tier.provider, tier.options)
            rows += [_row(place, one.path, one.message, is_good=False) for one in problems]
            if problems:
                continue
            try:
                found = await registry.check(tier.provider, tier.options, fleet_id)
            except HostlerError as error:
                rows.append(_row(place, "check", str(error), is_good=False))
                continue
            rows += [_row(place, one.subject, one.detail, is_good=one.is_good) for one in found]
            if not found:
                rows.append(_row(place, "options", "as they should be", is_good=True))
    return rows


def _row(place: Mapping[str, str], subject: str, detail: str, *, is_good: bool) -> dict[str, Any]:
    return {**place, "subject": subject, "is_good": is_good, "detail": detail}


def _agents(one: InstalledProvider) -> str | None:
    if one.has_agents is None:
        return None
    return "on its machines" if one.has_agents else "in the server"


_COLUMNS: Final[Sequence[Column[InstalledProvider]]] = (
    Column("NAME", lambda one: one.name),
    Column("USABLE", lambda one: "no" if one.problem else "yes", is_state=True),
    Column("PACKAGE", lambda one: one.package),
    Column("API", lambda one: one.api_version, is_wide=True),
    Column("AGENTS", _agents, is_wide=True),
    Column("PROBLEM", lambda one: one.problem),
)

_CHECK_COLUMNS: Final[Sequence[Column[dict[str, Any]]]] = (
    Column("TIER", lambda row: row["tier"]),
    Column("PROVIDER", lambda row: row["provider"]),
    Column("GOOD", lambda row: "yes" if row["is_good"] else "no", is_state=True),
    Column("WHAT", lambda row: row["subject"]),
    Column("DETAIL", lambda row: row["detail"]),
)
