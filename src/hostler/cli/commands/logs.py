"""`hostler logs`: what a job wrote."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.remote import Remote

if TYPE_CHECKING:
    from hostler.client import SyncClient


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "logs",
        panel=panels.LOOK,
        examples="""
        hostler logs live-channel/encoder/0
        hostler logs -f live-channel/encoder/1
        hostler logs a-000007 --tail 4KiB
        """,
    )(logs)


@remote
def logs(
    remote: Remote,
    target: Annotated[
        str,
        typer.Argument(metavar="REPLICA|ALLOCATION", help="A replica means its latest allocation."),
    ],
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on as more is written.")
    ] = False,
    tail: Annotated[
        str | None,
        typer.Option("--tail", metavar="SIZE", help="Begin so many bytes before the end: 4KiB."),
    ] = None,
) -> None:
    """Print what a job has written to standard output and error, as far as its node keeps it."""
    from hostler.base.units import size_bytes

    tail_bytes = None if tail is None else size_bytes(tail)
    allocation_id = _allocation_id(remote.client, target)
    out = sys.stdout.buffer
    for chunk in remote.client.logs(allocation_id, follow=follow, tail_bytes=tail_bytes):
        out.write(chunk)
        out.flush()


def _allocation_id(client: SyncClient, target: str) -> str:
    """Find the allocation that is meant; the latest one of a replica, placed or not."""
    from hostler.cli.kinds import ALLOCATIONS, REPLICAS

    noun, _, rest = target.partition("/")
    if "/" not in target or (noun in ALLOCATIONS.names and "/" not in rest):
        allocation_id = rest or target
        ALLOCATIONS.fetch(client, allocation_id)
        return allocation_id
    replica_id = rest if noun in REPLICAS.names and rest.count("/") == 2 else target
    replica = REPLICAS.fetch(client, replica_id)
    if replica.allocation_id is not None:
        return str(replica.allocation_id)
    past = [
        one
        for one in client.allocations(bundle=replica.bundle_id, include_ended=True)
        if one.replica_id == replica_id
    ]
    if not past:
        waits = f": it waits for {replica.reason}" if replica.reason else ""
        raise CommandError(
            f"{replica_id} has not run yet{waits}",
            code=ExitCode.REFUSED,
            hint=f"`hostler explain {replica_id}` says why",
        )
    return max(past, key=lambda one: one.epoch).allocation_id
