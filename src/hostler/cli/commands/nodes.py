"""`hostler cordon`, `uncordon`, `drain` and `end`: looking after nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.draining import is_drained, not_empty, watch_drains
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import OutputFormat, OutputOption, say_data
from hostler.cli.remote import Remote
from hostler.cli.terminal import note, say

if TYPE_CHECKING:
    from hostler.client import SyncClient

NodesArgument = Annotated[list[str], typer.Argument(metavar="NODE...", help="One or more nodes.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(
        app,
        "cordon",
        panel=panels.CARE,
        examples="""
        hostler cordon n-000001
        hostler cordon n-000001 n-000002 --reason "new kernel"
        """,
    )(cordon)
    command(
        app,
        "label",
        panel=panels.CARE,
        examples="""
        hostler label n-000001 rack=r1 disk=ssd
        hostler label n-000001 rack=
        """,
    )(label)
    command(app, "uncordon", panel=panels.CARE, examples="hostler uncordon n-000001")(uncordon)
    command(
        app,
        "confirm-lost",
        panel=panels.CARE,
        examples="hostler confirm-lost n-000001 n-000002",
    )(confirm_lost)
    command(
        app,
        "drain",
        panel=panels.CARE,
        examples="""
        hostler drain n-000001
        hostler drain n-000001 --deadline 30m --force
        hostler drain n-000001 --no-wait
        hostler drain n-000001 --retire
        """,
    )(drain)
    command(app, "end", panel=panels.CARE, examples="hostler end n-000123")(end)


@remote
def end(remote: Remote, node_ids: NodesArgument) -> None:
    """End machines that were held back because nobody knows whose they are.

    `hostler get stuck` lists them: each carries this fleet's label and the name of a node that the
    fleet never had. Another server may use the same fleet id, or an older store was restored.
    """
    _check_all(remote.client, node_ids)
    for node_id in node_ids:
        remote.client.end_orphan(node_id)
        say(f"node/{node_id} is being ended")


@remote
def cordon(
    remote: Remote,
    node_ids: NodesArgument,
    *,
    reason: Annotated[str, typer.Option("--reason", help="For those who wonder later.")] = "",
) -> None:
    """Let nothing new onto nodes. What is there stays."""
    _check_all(remote.client, node_ids)
    for node_id in node_ids:
        remote.client.cordon_node(node_id, reason)
        say(f"node/{node_id} cordoned")


@remote
def label(
    remote: Remote,
    node_id: Annotated[str, typer.Argument(metavar="NODE")],
    labels: Annotated[
        list[str], typer.Argument(metavar="NAME=VALUE...", help="NAME= takes the label away.")
    ],
) -> None:
    """Give a node labels, for rules about where work may be. What is there stays."""
    given: dict[str, str] = {}
    for text in labels:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise CommandError(f"{text!r} is not NAME=VALUE", code=ExitCode.BAD_INPUT)
        given[name] = value
    view = remote.client.label_node(node_id, given)
    told = ", ".join(f"{name}={value}" for name, value in view.labels.items())
    say(f"node/{node_id} has {told or 'no labels'}")


@remote
def uncordon(remote: Remote, node_ids: NodesArgument) -> None:
    """Let new work onto nodes again. Ends a drain too."""
    _check_all(remote.client, node_ids)
    for node_id in node_ids:
        remote.client.uncordon_node(node_id)
        say(f"node/{node_id} uncordoned")


@remote
def confirm_lost(remote: Remote, node_ids: NodesArgument) -> None:
    """Say that silent nodes are really gone, so that the brake on many losses does not hold them.

    Their work is placed elsewhere as soon as their silence is long enough for that.
    """
    _check_all(remote.client, node_ids)
    for node_id in node_ids:
        remote.client.confirm_lost(node_id)
        say(f"node/{node_id} confirmed lost")


@remote
def drain(
    remote: Remote,
    node_ids: NodesArgument,
    *,
    deadline: Annotated[
        str, typer.Option("--deadline", help="Until then everything should have left.")
    ] = "10m",
    force: Annotated[
        bool, typer.Option("--force", help="At the deadline, stop what is left.")
    ] = False,
    retire: Annotated[
        bool, typer.Option("--retire", help="Stop the machine when the node is empty.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Show what is left until nothing is.")
    ] = True,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Cordon nodes and move what is there elsewhere, replica by replica.

    A job that allows it is ready in its new place before it stops in the old one; any other is
    stopped when there is a place for it. What finds no place stays, and the reason is told: then
    this ends with exit code 1 at the deadline, unless --force has the rest stopped. Leases may run
    on until the deadline.
    """
    from hostler.base.units import duration_ms

    deadline_ms = duration_ms(deadline)
    _check_all(remote.client, node_ids)
    views = {
        node_id: remote.client.drain_node(
            node_id, deadline_ms=deadline_ms, is_forced=force, then_retire=retire
        )
        for node_id in node_ids
    }
    is_data = output in (OutputFormat.JSON, OutputFormat.YAML)
    for node_id in node_ids:
        tell = note if is_data else say
        tell(f"node/{node_id} draining")
    if wait:
        views = watch_drains(remote, node_ids, has_to_retire=retire)
    done = [view for view in views.values() if is_drained(view, has_to_retire=retire)]
    if is_data:
        say_data({"items": list(views.values())}, output)
    elif wait:
        for view in done:
            word = "retired" if view.phase == "retired" else "drained"
            say(f"node/{view.node_id} {word}: nothing left")
    if wait and len(done) < len(views):
        raise not_empty([view for view in views.values() if view not in done])


def _check_all(client: SyncClient, node_ids: list[str]) -> None:
    """Find all nodes before anything is done to one."""
    from hostler.cli.kinds import NODES

    for node_id in node_ids:
        NODES.fetch(client, node_id)
