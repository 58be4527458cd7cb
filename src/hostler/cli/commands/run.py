"""`hostler run`: a command on a warm node, as if it ran here."""

from __future__ import annotations

from typing import Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.errors import CommandError, ExitCode, report
from hostler.cli.lease_options import (
    ExcludeOption,
    NearOnlyOption,
    NearOption,
    NearWaitOption,
    NeedsOption,
    SelectorOption,
    ShareChoice,
    ShareOption,
    wishes,
)
from hostler.cli.remote import Remote
from hostler.cli.run_options import CopyInOption, CopyOutOption, EnvOption, StdinOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "run",
        panel=panels.SHORT_WORK,
        examples="""
        hostler run --pool runners -- uname -a
        hostler run --pool runners --key build-42 -- make test
        tar c . | hostler run --pool runners -- tar tv
        hostler run --pool runners --copy-in .:src --copy-out src/report.xml:report.xml \\
          --cwd src -- make test
        hostler run --lease l-000004 -- cat result.txt
        """,
        ignore_unknown_options=True,
        allow_interspersed_args=False,
    )(run)


@remote
def run(
    remote: Remote,
    argv: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="An argument vector; no shell.")
    ],
    *,
    pool: Annotated[str | None, typer.Option("--pool", "-p", help="Lease from this pool.")] = None,
    lease: Annotated[
        str | None,
        typer.Option("--lease", metavar="LEASE", help="Use a lease that is held; it stays held."),
    ] = None,
    key: Annotated[
        str, typer.Option("--key", help="Fairness key: runs with one key share a cap.")
    ] = "",
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="DURATION", help="Longest time in line for a node.")
    ] = "1m",
    priority: Annotated[int, typer.Option("--priority", help="Higher goes first.")] = 0,
    needs: NeedsOption = None,
    selector: SelectorOption = "",
    near: NearOption = None,
    near_wait: NearWaitOption = "0",
    near_only: NearOnlyOption = False,
    exclude: ExcludeOption = None,
    share: ShareOption = ShareChoice.ANY,
    env: EnvOption = None,
    cwd: Annotated[
        str | None, typer.Option("--cwd", help="Where it runs; else the lease's own folder.")
    ] = None,
    copy_in: CopyInOption = None,
    copy_out: CopyOutOption = None,
    stdin: StdinOption = None,
) -> None:
    """Lease a warm node, run a command on it, and release the node.

    Output and errors stream as they come, input is passed on, Ctrl-C, SIGTERM and SIGHUP reach the
    command. It exits as the command did, with 128 and the number for a signal; 125 means that not
    the command failed but Hostler. The node goes back healthy whatever the command said, and as
    poison when it could not run it. Its lease lasts for half a minute after the last heartbeat, so
    a killed `hostler run` gives its node up soon.

    Copies lie in the lease's folder, where the command runs too, unless their path there is
    absolute. Without a colon the name is the same on both sides; a target that ends with a slash
    is a folder to put it into. Copies are also fetched when the command failed, for its report.
    """
    import asyncio

    from hostler.cli.running import RunOptions, run_command

    try:
        options = RunOptions.read(
            argv=argv,
            pool=pool,
            lease_id=lease,
            key=key,
            timeout=timeout,
            priority=priority,
            wanted=wishes(
                needs=needs,
                selector=selector,
                near=near,
                near_wait=near_wait,
                near_only=near_only,
                exclude=exclude,
                share=share,
            ),
            env=env or [],
            cwd=cwd,
            has_stdin=stdin,
            copy_in=copy_in or [],
            copy_out=copy_out or [],
        )
    except CommandError as error:
        report(error)
        raise typer.Exit(ExitCode.BAD_INPUT) from error
    raise typer.Exit(asyncio.run(run_command(remote, options)))
