"""`hostler rollout`: how a changed bundle reaches what runs, seen and steered."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from hostler.base.units import duration_ms, format_duration
from hostler.cli import panels
from hostler.cli.command import command, group, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import At, Cell, OutputFormat, OutputOption, fields, say_data
from hostler.cli.remote import Remote, now_ms
from hostler.cli.terminal import note, say

if TYPE_CHECKING:
    from hostler.wire.http import RolloutView

BundleArgument = Annotated[str, typer.Argument(metavar="BUNDLE", help="Which bundle.")]

_UNDER_WAY = ("rolling", "rolling_back")


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(_group, name="rollout", rich_help_panel=panels.LONG_WORK)


_group = group("Watch, pause, resume and undo what a changed bundle does to its replicas.")


@command(
    _group,
    "status",
    examples="""
    hostler rollout status live-channel
    hostler rollout status live-channel --wait --timeout 15m
    """,
)
@remote
def status(
    remote: Remote,
    bundle: BundleArgument,
    output: OutputOption = OutputFormat.TABLE,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Follow it until it is over.")] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="How long --wait waits.")
    ] = "30m",
) -> None:
    """Show how far the latest rollout is.

    Ends with 0 when the submitted version is what runs, or is on its way; with 4 when the rollout
    is held or was rolled back.
    """
    view = _followed(remote, bundle, duration_ms(timeout)) if wait else _fetch(remote, bundle)
    _show(view, output)
    if view.phase in ("held", "rolled_back", "rolling_back"):
        raise CommandError(
            f"bundle/{bundle}: the rollout is {view.phase}"
            + (f": {view.evidence}" if view.evidence else ""),
            code=ExitCode.REFUSED,
            hint=_HINTS[view.phase].format(bundle=bundle),
        )


_HINTS = {
    "held": "`hostler rollout resume {bundle}` tries again, `hostler rollout undo {bundle}` turns"
    " back, and a better version may be applied",
    "rolled_back": "`hostler events --about {bundle}` has the history; apply a better version",
    "rolling_back": "`hostler rollout status {bundle} --wait` follows it",
}


@command(_group, "pause", examples="hostler rollout pause live-channel")
@remote
def pause(
    remote: Remote, bundle: BundleArgument, output: OutputOption = OutputFormat.TABLE
) -> None:
    """Replace nothing more for now; what is on its way arrives."""
    _steer(remote, bundle, "pause", output)


@command(_group, "resume", examples="hostler rollout resume live-channel")
@remote
def resume(
    remote: Remote, bundle: BundleArgument, output: OutputOption = OutputFormat.TABLE
) -> None:
    """Go on with a rollout that is paused, or held after a failure."""
    _steer(remote, bundle, "resume", output)


@command(_group, "undo", examples="hostler rollout undo live-channel")
@remote
def undo(remote: Remote, bundle: BundleArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Go back to what the bundle was before, under way or long after."""
    _steer(remote, bundle, "undo", output)


def _fetch(remote: Remote, bundle: str) -> RolloutView:
    from hostler.cli.kinds import BUNDLES
    from hostler.client import ClientError

    BUNDLES.fetch(remote.client, bundle)
    try:
        return remote.patient_client.rollout(bundle)
    except ClientError as error:
        if error.status != 404:
            raise
        raise CommandError(
            f"bundle/{bundle} has never been rolled out: no launch of it was changed yet",
            code=ExitCode.NOT_FOUND,
            hint=f"`hostler describe bundle {bundle}` shows what runs",
        ) from error


def _steer(remote: Remote, bundle: str, steering: str, output: OutputFormat) -> None:
    from hostler.cli.kinds import BUNDLES

    BUNDLES.fetch(remote.client, bundle)
    _show(remote.client.steer_rollout(bundle, steering), output)


def _followed(remote: Remote, bundle: str, timeout_ms: int) -> RolloutView:
    """Tell each step of progress until it is over."""
    from hostler.cli.draining import POLL_S

    ends_at_ms, told = now_ms() + timeout_ms, ""
    while True:
        view = _fetch(remote, bundle)
        if view.phase not in _UNDER_WAY:
            return view
        line = f"{view.phase}: {view.settled_count} of {view.replica_count} settled"
        if view.waits_for:
            line += f"; {view.waits_for}"
        if line != told:
            told = line
            note(f"bundle/{bundle} {line}")
        if now_ms() > ends_at_ms:
            raise CommandError(
                f"bundle/{bundle}: not over within {format_duration(timeout_ms)}; {line}",
                code=ExitCode.FAILED,
            )
        time.sleep(POLL_S)


def _show(view: RolloutView, output: OutputFormat) -> None:
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data(view, output)
        return
    state = f"{view.phase}, paused" if view.is_paused else view.phase
    pairs: list[tuple[str, Cell]] = [
        ("Bundle", view.bundle_id),
        ("Rollout", state),
        ("Since", At(view.phase_since_at_ms)),
        ("Generation", view.generation),
        ("Undo leads to", view.former_generation),
        ("Settled", f"{view.settled_count} of {view.replica_count}"),
        ("Waits for", view.waits_for or None),
        ("Because", view.evidence or None),
        ("By", view.begun_by or None),
    ]
    for line in fields(pairs, now_ms=now_ms()):
        say(line)
