"""`hostler lease`: holding warm nodes by hand and from scripts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from hostler.cli import panels
from hostler.cli.command import command, group, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.lease_options import (
    ExcludeOption,
    LabelOption,
    NearOnlyOption,
    NearOption,
    NearWaitOption,
    NeedsOption,
    SelectorOption,
    ShareChoice,
    ShareOption,
    wishes,
)
from hostler.cli.output import OutputFormat, OutputOption, say_data
from hostler.cli.remote import Remote
from hostler.cli.terminal import note, say

if TYPE_CHECKING:
    from hostler.wire.http import AcquireRequest, LeaseView

LeaseArgument: TypeAlias = Annotated[str, typer.Argument(metavar="LEASE", help="Its id.")]
PoolOption: TypeAlias = Annotated[str, typer.Option("--pool", "-p", help="The pool to lease from.")]
KeyOption: TypeAlias = Annotated[
    str, typer.Option("--key", help="Fairness key: leases with one key share the pool's cap.")
]
TimeoutOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--timeout", metavar="DURATION", help="Longest time in line; 0 takes a free node or none."
    ),
]
PriorityOption: TypeAlias = Annotated[int, typer.Option("--priority", help="Higher goes first.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(_group, name="lease", rich_help_panel=panels.SHORT_WORK)


_group = group("Hold warm nodes: a lease lasts until it is released or its heartbeats stop.")


@command(
    _group,
    "acquire",
    examples="""
    hostler lease acquire --pool runners
    hostler lease acquire --pool runners --key build-42 --needs cores=2 --needs gpu=1
    hostler lease acquire --pool runners --near l-000004 --near-wait 30s
    lease=$(hostler lease acquire --pool runners -o json | jq -r .lease_id)
    hostler run --lease $lease -- make test
    hostler lease release $lease
    """,
)
@remote
def acquire(
    remote: Remote,
    pool: PoolOption,
    output: OutputOption = OutputFormat.TABLE,
    *,
    key: KeyOption = "",
    timeout: TimeoutOption = "1m",
    priority: PriorityOption = 0,
    lasts: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="DURATION",
            help="Ends so long after the last heartbeat; else the pool's own.",
        ),
    ] = None,
    ack_within: Annotated[
        str | None,
        typer.Option(
            "--ack-within",
            metavar="DURATION",
            help="Take it back, the node untouched, unless it is renewed or used so soon.",
        ),
    ] = None,
    needs: NeedsOption = None,
    selector: SelectorOption = "",
    near: NearOption = None,
    near_wait: NearWaitOption = "0",
    near_only: NearOnlyOption = False,
    exclude: ExcludeOption = None,
    share: ShareOption = ShareChoice.ANY,
    label: LabelOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would come of it; exits 1 for nothing.")
    ] = False,
) -> None:
    """Take a warm node and return at once; whoever has the id renews and releases it."""
    import asyncio

    from hostler.cli.leasing import acquire_lease, say_plan

    wanted = wishes(
        needs=needs,
        selector=selector,
        near=near,
        near_wait=near_wait,
        near_only=near_only,
        exclude=exclude,
        share=share,
        label=label,
    )
    asked = _asked(pool, key, timeout, priority, lasts=lasts, ack_within=ack_within, **wanted)
    if dry_run:
        raise typer.Exit(say_plan(remote, asked, output))
    view = asyncio.run(acquire_lease(remote, asked))
    _say(view, output)
    if output is OutputFormat.TABLE:
        note(f"renew it with `hostler lease renew {view.lease_id}` before it expires")


@command(
    _group,
    "hold",
    examples="""
    hostler lease hold --pool runners
    """,
)
@remote
def hold(
    remote: Remote,
    pool: PoolOption,
    *,
    key: KeyOption = "",
    timeout: TimeoutOption = "1m",
    priority: PriorityOption = 0,
    needs: NeedsOption = None,
    selector: SelectorOption = "",
    near: NearOption = None,
    near_wait: NearWaitOption = "0",
    near_only: NearOnlyOption = False,
    exclude: ExcludeOption = None,
    share: ShareOption = ShareChoice.ANY,
    label: LabelOption = None,
) -> None:
    """Take a warm node and keep it, with heartbeats, until Ctrl-C; then release it."""
    import asyncio

    from hostler.cli.leasing import hold_lease

    wanted = wishes(
        needs=needs,
        selector=selector,
        near=near,
        near_wait=near_wait,
        near_only=near_only,
        exclude=exclude,
        share=share,
        label=label,
    )
    asyncio.run(hold_lease(remote, _asked(pool, key, timeout, priority, **wanted)))


def _asked(
    pool: str,
    key: str,
    timeout: str,
    priority: int,
    *,
    lasts: str | None = None,
    ack_within: str | None = None,
    **wanted: Any,
) -> AcquireRequest:
    from hostler.base.units import duration_ms
    from hostler.wire.http import AcquireRequest

    return AcquireRequest(
        pool=pool,
        key=key,
        priority=priority,
        timeout_ms=0 if timeout == "0" else duration_ms(timeout),
        lease_ms=None if lasts is None else duration_ms(lasts),
        ack_ms=None if ack_within is None else duration_ms(ack_within),
        **wanted,
    )


def _say(view: LeaseView, output: OutputFormat) -> None:
    from hostler.base.units import format_duration
    from hostler.cli.remote import now_ms

    match output:
        case OutputFormat.JSON | OutputFormat.YAML:
            say_data(view, output)
        case OutputFormat.NAME:
            say(f"lease/{view.lease_id}")
        case OutputFormat.TABLE | OutputFormat.WIDE:
            left_ms = max(0, (view.expires_at_ms or 0) - now_ms())
            when = f", expires in {format_duration(left_ms)}" if view.phase == "held" else ""
            node = f" on {view.node_id}" if view.node_id else ""
            outcome = f" ({view.outcome})" if view.outcome else ""
            say(f"lease/{view.lease_id} {view.phase}{outcome}{node}{when}")
    sys.stdout.flush()


@command(_group, "renew", examples="hostler lease renew l-000004")
@remote
def renew(
    remote: Remote, lease_id: LeaseArgument, output: OutputOption = OutputFormat.TABLE
) -> None:
    """Send a heartbeat: the lease lasts its full time again from now."""
    view = _fetch(remote, lease_id)
    if view.phase != "held":
        raise CommandError(
            f"lease {lease_id} is not held any more: {view.outcome or view.phase}",
            code=ExitCode.REFUSED,
        )
    _say(remote.client.heartbeat_lease(view.lease_id, view.epoch), output)


@command(_group, "extend", examples="hostler lease extend l-000004 --by 2m")
@remote
def extend(
    remote: Remote,
    lease_id: LeaseArgument,
    by: Annotated[str, typer.Option("--by", metavar="DURATION", help="How much longer.")],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Stay longer on a node that is to go, as far as its pool lets holders."""
    from hostler.base.units import duration_ms

    view = _fetch(remote, lease_id)
    _say(remote.client.extend_lease(view.lease_id, view.epoch, duration_ms(by)), output)


@command(
    _group,
    "release",
    examples="""
    hostler lease release l-000004
    hostler lease release l-000004 --poison --reason "disk errors"
    """,
)
@remote
def release(
    remote: Remote,
    lease_id: LeaseArgument,
    output: OutputOption = OutputFormat.TABLE,
    *,
    poison: Annotated[
        bool, typer.Option("--poison", help="Nobody shall hold this node again; it is replaced.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", help="For those who wonder later.")] = "",
) -> None:
    """Give a node back, or leave the line."""
    view = _fetch(remote, lease_id)
    settled = remote.client.release_lease(view.lease_id, is_healthy=not poison, detail=reason)
    _say(settled, output)


@command(_group, "revoke", examples='hostler lease revoke l-000004 --reason "runaway"')
@remote
def revoke(
    remote: Remote,
    lease_id: LeaseArgument,
    output: OutputOption = OutputFormat.TABLE,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Told to the holder.")] = "",
) -> None:
    """Take a lease away from its holder. The node is not leased again."""
    view = _fetch(remote, lease_id)
    _say(remote.client.revoke_lease(view.lease_id, reason), output)


@command(
    _group,
    "list",
    examples="""
    hostler lease list
    hostler lease list --pool runners --all
    """,
)
@remote
def list_leases(
    remote: Remote,
    output: OutputOption = OutputFormat.TABLE,
    *,
    pool: Annotated[str | None, typer.Option("--pool", "-p", help="Only of this pool.")] = None,
    is_all: Annotated[bool, typer.Option("--all", "-a", help="Also those that are over.")] = False,
) -> None:
    """List leases that are held or wait in line."""
    from hostler.cli.kinds import LEASES, Filters
    from hostler.cli.listing import say_list

    found = LEASES.listed(remote.client, Filters(pool=pool, is_all=is_all))
    say_list(found, LEASES, output)


@command(_group, "show", examples="hostler lease show l-000004")
@remote
def show(
    remote: Remote, lease_id: LeaseArgument, output: OutputOption = OutputFormat.TABLE
) -> None:
    """Show everything about one lease."""
    from hostler.cli.descriptions import described

    view = _fetch(remote, lease_id)
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data(view, output)
        return
    for line in described(remote.client, view):
        say(line)


def _fetch(remote: Remote, lease_id: str) -> LeaseView:
    from hostler.cli.kinds import LEASES

    view: LeaseView = LEASES.fetch(remote.client, lease_id.removeprefix("lease/"))
    return view
