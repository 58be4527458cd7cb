"""`hostler config`: the server's configuration, and the one that a job works by."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hostler.base.units import duration_ms
from hostler.cli import panels
from hostler.cli.command import command, group, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import OutputFormat, OutputOption, counted, say_data
from hostler.cli.remote import Remote
from hostler.cli.terminal import note, say

if TYPE_CHECKING:
    from hostler.wire.http import ConfigChangeView, ReloadEffectView, ReloadView


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(_group, name="config", rich_help_panel=panels.SETTINGS)


_group = group("Check hostler.yaml, have the server read it again; say what a job works by.")


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

    Options are checked by the providers that are installed here, time zones against the zone
    database; of each window it is told when it comes next. Whether credentials are good and hosts
    answer is for `hostler providers check` to find out.
    """
    from hostler.cli.documents import name_of, read_text
    from hostler.engine.config_check import check_configuration
    from hostler.wire.documents import read_config

    reading = read_config(read_text(file), name_of(file))
    document = reading.require()
    found = check_configuration(document)
    if found.problems:
        raise reading.placed(found.problems)
    for one in found.unknown:
        note(f"{one.path}: not checked: {one.message}")
    tiers = sum(len(pool.tiers) for pool in document.pools.values())
    say(
        f"{name_of(file)} is good: {counted(len(document.pools), 'pool')}, {counted(tiers, 'tier')}"
    )
    for window in found.next_windows:
        told = f"; {window.note}" if window.note else ""
        say(f"  {window.pool}: {window.window} comes {window.local} ({window.time_zone}){told}")


@command(
    _group,
    "reload",
    examples="""
    hostler config reload --dry-run
    hostler config reload
    hostler config reload --yes
    """,
)
@remote
def reload(
    remote: Remote,
    output: OutputOption = OutputFormat.TABLE,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Have the server read its configuration file again: all of it is applied, or nothing.

    First it is shown what differs and what follows for machines and leases. Machines end at the
    provider that made them, whatever the file says by now; what is leased is not ended by a reload,
    but for pools that are disabled or gone: their leases may stay for `retire_notice`.
    """
    shown = remote.client.reload_config(is_dry_run=True)
    is_for_people = output in (OutputFormat.TABLE, OutputFormat.WIDE)
    if is_for_people:
        for line in reload_lines(shown):
            say(line)
    if not dry_run and shown.changes:
        if not yes and not _is_agreed():
            raise CommandError("nothing was changed", code=ExitCode.FAILED)
        shown = remote.client.reload_config(digest=shown.digest)
        if is_for_people:
            say("the configuration is in force")
    if not is_for_people:
        say_data(shown, output)


def _is_agreed() -> bool:
    if not sys.stdin.isatty():
        raise CommandError(
            "nobody is there to be asked, so nothing was changed",
            code=ExitCode.BAD_INPUT,
            hint="look with --dry-run, then say --yes",
        )
    return typer.confirm("Apply this?", err=True)


def reload_lines(view: ReloadView) -> list[str]:
    """Write what a reload changes, as a diff by path, and what follows from it."""
    if not view.changes:
        return ["the file says what is in force already"]
    now = [line for one in view.changes if not one.needs_restart for line in _change(one)]
    later = [line for one in view.changes if one.needs_restart for line in _change(one)]
    if later:
        later.insert(0, "only after the server is started again:")
    effects = [_effect(one) for one in view.effects]
    if effects:
        effects.insert(0, "what follows at once:")
    return [*now, *later, *effects]


def _change(one: ConfigChangeView) -> list[str]:
    if one.before is None:
        return [f"+ {one.path}: {one.after}"]
    if one.after is None:
        return [f"- {one.path}: {one.before}"]
    return [f"~ {one.path}: {one.before} -> {one.after}"]


_EFFECTS: Final = {
    "launched": ("machine", "is launched", "are launched"),
    "retired": ("node", "goes", "go"),
    "replaced": ("node", "is to be replaced", "are to be replaced"),
    "drained": ("node", "is drained", "are drained"),
    "undrained": ("node", "is no longer drained", "are no longer drained"),
    "refused": ("waiting request", "is refused", "are refused"),
    "asked_to_leave": ("lease", "is told when to leave", "are told when to leave"),
}


def _effect(one: ReloadEffectView) -> str:
    noun, singular, plural = _EFFECTS.get(one.effect, ("thing", one.effect, one.effect))
    told = f" ({one.reason})" if one.reason else ""
    verb = singular if one.count == 1 else plural
    return f"  {one.pool}: {counted(one.count, noun)} {verb}{told}"


@command(
    _group,
    "set",
    examples="""
    hostler config set live-channel/encoder -f config.yaml
    hostler config set live-channel/encoder -f config.yaml --wait
    echo '{"values": {"title": "news"}}' | hostler config set live-channel/encoder -f -
    hostler config set live-channel/encoder --clear
    """,
)
@remote
def set_for_job(
    remote: Remote,
    job: Annotated[str, typer.Argument(metavar="BUNDLE/JOB", help="Which job.")],
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="values, files and signal; - is standard input."),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Let it work by none any more.")] = False,
    if_generation: Annotated[
        int | None, typer.Option(help="Only if the bundle is at this generation still.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Return when every running copy has it.")
    ] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="Longest wait with --wait.")
    ] = "5m",
) -> None:
    """Let a job work by another configuration; nothing else of its bundle changes.

    The file says what `config` of the job says in a bundle, and all of it. Running copies get it in
    place, later ones start with it. Applying the bundle again has its word on this job, too.
    """
    from hostler.cli.commands.bundles import bundle_and_job
    from hostler.cli.job_configs import read_job_config_file, wait_delivered
    from hostler.wire.documents import JobConfigDocument

    if (file is None) != clear:
        raise CommandError("give -f FILE, or --clear", code=ExitCode.BAD_INPUT)
    timeout_ms = duration_ms(timeout)
    document = JobConfigDocument() if file is None else read_job_config_file(file)
    bundle_id, name = bundle_and_job(remote, job)
    view = remote.client.configure_job(bundle_id, name, document, if_generation=if_generation)
    numbers = [one.config.generation for one in view.jobs if one.name == name and one.config]
    say(f"job/{job} works by configuration {max(numbers, default=0)} from now on")
    if wait:
        wait_delivered(remote, bundle_id, name, timeout_ms)
        say(f"job/{job}: every running copy has it")


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
