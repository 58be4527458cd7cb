"""`hostler cordon`, `uncordon`, `drain` and `end`: looking after nodes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hostler.cli import panels
from hostler.cli.command import command, remote
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.remote import Remote
from hostler.cli.terminal import note, say

if TYPE_CHECKING:
    from hostler.client import SyncClient
    from hostler.wire.http import NodeView

NodesArgument = Annotated[list[str], typer.Argument(metavar="NODE...", help="One or more nodes.")]

POLL_S: Final = 0.3
"""Between two looks at what is waited for: short for a person, nothing for a server."""


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
        "drain",
        panel=panels.CARE,
        examples="""
        hostler drain n-000001
        hostler drain n-000001 --deadline 30m --wait
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
def drain(
    remote: Remote,
    node_ids: NodesArgument,
    *,
    deadline: Annotated[
        str, typer.Option("--deadline", help="Until then work may end or move by itself.")
    ] = "5m",
    retire: Annotated[
        bool, typer.Option("--retire", help="Stop the machine when the node is empty.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the nodes are empty.")] = False,
) -> None:
    """Cordon nodes and move what is there elsewhere.

    Jobs are stopped and placed again, one replica at a time; leases may run on. At the deadline
    what is left is ended.
    """
    from hostler.base.units import duration_ms

    deadline_ms = duration_ms(deadline)
    _check_all(remote.client, node_ids)
    for node_id in node_ids:
        remote.client.drain_node(node_id, deadline_ms=deadline_ms, then_retire=retire)
        say(f"node/{node_id} draining")
    if wait:
        for node_id in node_ids:
            _wait_empty(remote, node_id, has_to_retire=retire)
            say(f"node/{node_id} {'retired' if retire else 'drained'}")


def _check_all(client: SyncClient, node_ids: list[str]) -> None:
    """Find all nodes before anything is done to one."""
    from hostler.cli.kinds import NODES

    for node_id in node_ids:
        NODES.fetch(client, node_id)


def _wait_empty(remote: Remote, node_id: str, *, has_to_retire: bool) -> None:
    told = ""
    while True:
        node = remote.patient_client.node(node_id)
        if node.phase == "retired" or (not has_to_retire and _is_empty(node)):
            return
        if node.drain is None and node.phase == "ready":
            raise CommandError(f"the drain of {node_id} was called off")
        left = f"{node.allocation_count} placed, {node.lease_count} leased"
        if left != told:
            note(f"node/{node_id}: {node.phase}, {left}")
            told = left
        time.sleep(POLL_S)


def _is_empty(node: NodeView) -> bool:
    return node.allocation_count == 0 and node.lease_count == 0
