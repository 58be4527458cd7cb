"""`hostler delete`, `start`, `stop` and `reset`: bundles and their jobs, on and off."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.remote import Remote
from hostler.cli.terminal import note, say


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app,
        "delete",
        panel=panels.LONG_WORK,
        examples="""
        hostler delete bundle live-channel
        hostler delete bundle live-channel --wait
        """,
    )(delete)
    command(app, "start", panel=panels.LONG_WORK, examples="hostler start live-channel/encoder")(
        start
    )
    command(app, "stop", panel=panels.LONG_WORK, examples="hostler stop live-channel/encoder")(stop)
    command(
        app,
        "reset",
        panel=panels.LONG_WORK,
        examples="""
        hostler reset live-channel
        hostler reset live-channel/encoder/0
        """,
    )(reset)


@remote
def delete(
    remote: Remote,
    kind: Annotated[str, typer.Argument(metavar="bundle", help="Only bundles can be deleted.")],
    bundle_id: Annotated[str | None, typer.Argument(metavar="ID", help="Which one.")] = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Return when nothing of it runs.")] = False,
) -> None:
    """Stop everything of a bundle, then forget it."""
    from hostler.cli.kinds import BUNDLES, kind_and_id

    found, wanted_id = kind_and_id(kind, bundle_id)
    if found is not BUNDLES:
        raise CommandError(
            f"a {found.noun} cannot be deleted",
            code=ExitCode.BAD_INPUT,
            hint=_INSTEAD.get(found.noun, "only bundles can"),
        )
    if wanted_id is None:
        raise CommandError("say which bundle", code=ExitCode.BAD_INPUT)
    BUNDLES.fetch(remote.client, wanted_id)
    remote.client.delete_bundle(wanted_id)
    say(f"bundle/{wanted_id} {'deleting' if wait else 'is being deleted'}")
    if wait:
        _wait_gone(remote, wanted_id)
        say(f"bundle/{wanted_id} deleted")


_INSTEAD = {
    "node": "`hostler drain NODE --retire` ends a node",
    "lease": "`hostler lease release` or `hostler lease revoke` ends a lease",
    "token": "`hostler token revoke` ends a token",
    "replica": "its bundle can: a smaller `replicas` removes copies",
    "allocation": "`hostler drain NODE` moves what runs on a node",
    "pool": "take it out of hostler.yaml",
}


def _wait_gone(remote: Remote, bundle_id: str) -> None:
    from hostler.cli.draining import POLL_S
    from hostler.client import ClientError

    told = -1
    while True:
        try:
            view = remote.patient_client.bundle(bundle_id)
        except ClientError as error:
            if error.status == 404:
                return
            raise
        if view.phase == "deleted":
            return
        if view.placed_count != told:
            told = view.placed_count
            note(f"bundle/{bundle_id}: {told} placed")
        time.sleep(POLL_S)


@remote
def start(
    remote: Remote,
    job: Annotated[str, typer.Argument(metavar="BUNDLE/JOB", help="Which job.")],
) -> None:
    """Start the replicas of a job that are dormant, dropped or broken.

    Clears the restart history: only an operator can.
    """
    remote.client.start_job(*bundle_and_job(remote, job))
    say(f"job/{job} started")


@remote
def stop(
    remote: Remote,
    job: Annotated[str, typer.Argument(metavar="BUNDLE/JOB", help="Which job.")],
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Return when nothing of it runs.")] = False,
) -> None:
    """Stop the replicas of a job, until `hostler start` starts it again.

    Their room is free once they have ended; a machine launched for them goes when it has been idle.
    """
    bundle_id, name = bundle_and_job(remote, job)
    remote.client.stop_job(bundle_id, name)
    say(f"job/{job} {'stopping' if wait else 'is being stopped'}")
    if wait:
        _wait_stopped(remote, bundle_id, name)
        say(f"job/{job} stopped")


@remote
def reset(
    remote: Remote,
    which: Annotated[
        str, typer.Argument(metavar="BUNDLE[/JOB/INDEX]", help="A bundle, or one replica.")
    ],
) -> None:
    """Forget the failures of replicas, and try again what was given up.

    Restart counts and avoided nodes are forgotten; what is broken or dropped is placed again.
    """
    from hostler.cli.kinds import BUNDLES, REPLICAS

    if "/" not in which:
        BUNDLES.fetch(remote.client, which)
        remote.client.reset_bundle(which)
        say(f"bundle/{which} reset")
        return
    REPLICAS.fetch(remote.client, which)
    remote.client.reset_replica(which)
    say(f"replica/{which} reset")


def bundle_and_job(remote: Remote, job: str) -> tuple[str, str]:
    """Read BUNDLE/JOB, and see that there is such a one."""
    from hostler.cli.kinds import BUNDLES, not_found

    bundle_id, slash, name = job.partition("/")
    if not (slash and bundle_id and name) or "/" in name:
        raise CommandError(
            f"{job} is not BUNDLE/JOB, such as live-channel/encoder", code=ExitCode.BAD_INPUT
        )
    jobs = [one.name for one in BUNDLES.fetch(remote.client, bundle_id).jobs]
    if name not in jobs:
        raise not_found("job", job, [f"{bundle_id}/{one}" for one in jobs])
    return bundle_id, name


def _wait_stopped(remote: Remote, bundle_id: str, job: str) -> None:
    from hostler.cli.draining import POLL_S

    told = -1
    while True:
        replicas = remote.patient_client.replicas(bundle=bundle_id)
        left = sum(one.job == job and one.allocation_id is not None for one in replicas)
        if not left:
            return
        if left != told:
            told = left
            note(f"job/{bundle_id}/{job}: {left} placed")
        time.sleep(POLL_S)
