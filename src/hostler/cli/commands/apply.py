"""`hostler plan` and `hostler apply`: what should run, asked first or done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import OutputFormat, OutputOption, counted, say_data
from hostler.cli.protection_text import protection_lines
from hostler.cli.remote import Remote
from hostler.cli.terminal import note, say

if TYPE_CHECKING:
    from hostler.client import SyncClient
    from hostler.wire.documents import BundleDocument, Reading
    from hostler.wire.http import CollisionView, PlannedReplica, PlanView

FilesOption: TypeAlias = Annotated[
    list[Path],
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="A file, a folder of them, or - for standard input; repeatable.",
    ),
]

_MARKS: Final = {"create": "+", "keep": " ", "update": "~", "remove": "-"}
_DONE: Final = {"create": "created", "update": "changed", "keep": "unchanged"}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app,
        "plan",
        panel=panels.LONG_WORK,
        examples="""
        hostler plan -f examples/live-channel.yaml
        hostler plan -f bundles/ -o json
        """,
    )(plan)
    command(
        app,
        "apply",
        panel=panels.LONG_WORK,
        examples="""
        hostler apply -f examples/live-channel.yaml
        hostler apply -f bundles/ --wait
        hostler apply -f channel.yaml --at 4711
        hostler apply -f channel.yaml --if-generation 3
        cat channel.yaml | hostler apply -f -
        """,
    )(apply)


@remote
def plan(remote: Remote, file: FilesOption, output: OutputOption = OutputFormat.TABLE) -> None:
    """Say what would follow from applying bundles now, and why. Nothing is changed.

    It is the decision itself, made and dropped again: same filters, same scores, same reasons.
    """
    from hostler.cli.documents import read_bundle_files

    readings = read_bundle_files(file)
    plans = _plans(remote.client, readings)
    match output:
        case OutputFormat.JSON | OutputFormat.YAML:
            say_data({"items": plans}, output)
        case OutputFormat.NAME:
            for one in plans:
                say(f"bundle/{one.bundle_id}")
        case OutputFormat.TABLE | OutputFormat.WIDE:
            for one in plans:
                for line in plan_lines(one):
                    say(line)


@remote
def apply(
    remote: Remote,
    file: FilesOption,
    output: OutputOption = OutputFormat.TABLE,
    *,
    at: Annotated[
        int | None,
        typer.Option("--at", metavar="REV", help="Only what `plan` said at this revision."),
    ] = None,
    if_generation: Annotated[
        int | None,
        typer.Option(
            "--if-generation",
            metavar="N",
            min=0,
            help="Only if nobody has changed it since it was at this generation; 0: only if new.",
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Return when every replica is ready.")
    ] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="Longest wait with --wait.")
    ] = "5m",
) -> None:
    """Create bundles, or change what is desired of them.

    All files are read and asked about first: if anything is wrong with one, every error is told
    with its line and nothing is changed. Applying the same again changes nothing.
    """
    from hostler.base.units import duration_ms
    from hostler.cli.documents import read_bundle_files
    from hostler.cli.progress import wait_ready

    timeout_ms = duration_ms(timeout)
    readings = read_bundle_files(file)
    if at is not None and len(readings) != 1:
        raise CommandError(
            "--at goes with one bundle: applying the first changes what was planned for the next",
            code=ExitCode.BAD_INPUT,
        )
    if if_generation is not None and len(readings) != 1:
        raise CommandError(
            "--if-generation goes with one bundle: each counts its own", code=ExitCode.BAD_INPUT
        )
    plans = _plans(remote.client, readings)
    views = [
        remote.client.submit_bundle(reading.require(), at=at, if_generation=if_generation)
        for reading in readings
    ]
    match output:
        case OutputFormat.JSON | OutputFormat.YAML:
            say_data({"items": views}, output)
        case OutputFormat.NAME:
            for view in views:
                say(f"bundle/{view.bundle_id}")
        case OutputFormat.TABLE | OutputFormat.WIDE:
            for one in plans:
                say(f"bundle/{one.bundle_id} {_DONE.get(one.change, one.change)}")
                for line in protection_lines(one.protection):
                    note(line)
    if wait:
        wait_ready(remote.patient_client, [view.bundle_id for view in views], timeout_ms)


def _plans(client: SyncClient, readings: Sequence[Reading[BundleDocument]]) -> list[PlanView]:
    """Ask about every bundle.

    Raises:
        CommandError: The server would refuse some; all of its reasons are told with their lines.
    """
    from hostler.wire.documents import DocumentProblem

    plans = [client.plan_bundle(reading.require()) for reading in readings]
    details: list[str] = []
    for reading, one in zip(readings, plans, strict=True):
        if not one.is_accepted:
            problems = [
                DocumentProblem(path=error.path, code=error.code, message=error.message)
                for error in one.errors
            ]
            details += reading.placed(problems).lines()
    if details:
        raise CommandError(
            f"the server does not accept this: {counted(len(details), 'problem')}; nothing was"
            " changed",
            code=ExitCode.BAD_INPUT,
            details=details,
        )
    return plans


def plan_lines(view: PlanView) -> list[str]:
    """Write a plan: a line for each replica, and what it comes to."""
    from hostler.cli.tables import money_text

    told = {"create": "would be created", "update": "would change", "keep": "stays as it is"}
    lines = [f"bundle {view.bundle_id} {told.get(view.change, view.change)}"]
    width = max((len(one.replica_id) for one in view.replicas), default=0)
    for one in view.replicas:
        lines.append(_planned_line(one, width))
        if one.outcome == "waiting" and one.trace not in ("", one.reason_detail):
            lines.append(" " * (width + 6) + one.trace)
    waiting = sum(one.outcome == "waiting" for one in view.replicas)
    parts = [counted(len(view.replicas), "replica")]
    if waiting:
        parts.append(f"{waiting} would wait")
    if view.launch_count:
        cost = view.launch_microusd_per_hour
        money = f" for {money_text(cost)} an hour" if cost else ""
        parts.append(f"{counted(view.launch_count, 'machine')} would be launched{money}")
    if view.protection is not None and view.replicas:
        lines += protection_lines(view.protection)
    lines += [_collision_line(one) for one in view.collisions]
    return [*lines, f"{', '.join(parts)}; nothing was changed (revision {view.revision})"]


def _collision_line(one: CollisionView) -> str:
    others = f", with {', '.join(one.bundles)}" if one.bundles else ""
    return (
        f"  ! {one.local}: {one.resource} of pool {one.pool} is not enough:"
        f" {one.needed} needed, {one.available} there{others}"
    )


def _planned_line(one: PlannedReplica, width: int) -> str:
    mark = _MARKS.get(one.change, "?")
    match one.outcome:
        case "placed":
            where = f"on {one.node_id} ({one.pool}/{one.tier})"
        case "launching":
            offer = f", offer {one.offer}" if one.offer else ""
            where = f"on a machine to be launched ({one.pool}/{one.tier}{offer})"
        case "waiting":
            detail = f": {one.reason_detail}" if one.reason_detail else ""
            where = f"waits: {one.reason}{detail}"
        case _:
            where = one.outcome
    degraded = f", degraded by {', '.join(one.degraded_by)}" if one.degraded_by else ""
    return f"  {mark} {one.replica_id.ljust(width)}  {where}{degraded}"
