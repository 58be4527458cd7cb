"""Readiness: until when a new machine may boot, and what is asked of its agent meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.model import Node
from hostler.model.command import CheckReady
from hostler.model.node import Origin
from hostler.model.ready import ReadyCheck

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet
    from hostler.core.txn import Txn


def booted_by_at_ms(fleet: Fleet, node: Node) -> int:
    """Return until when a machine that boots may go on doing so.

    One that joined by itself may take its time to pass its ready check: nothing is paid for it, and
    somebody may be setting it up. It is given up when its agent answers no more.
    """
    state = node.readiness
    if state is None:
        return node.phase_since_at_ms + node.boot_ms
    pool = fleet.pools.get(node.pool)
    check = None if pool is None else pool.ready
    deadline_ms = node.boot_ms if check is None else check.deadline_ms
    since_at_ms = state.answered_at_ms if node.origin is Origin.JOINED else state.since_at_ms
    return since_at_ms + deadline_ms


def ready_try_at_ms(node: Node) -> int | None:
    """Return when the ready check of a machine that boots is tried next."""
    return None if node.readiness is None else node.readiness.next_at_ms


def ready_command_id(node: Node) -> str:
    """Return the id of the command that tries a node's ready check; each try has its own."""
    state = node.readiness
    return f"{node.node_id}/ready/{0 if state is None else state.try_count}"


def send_ready_check(txn: Txn, node: Node, check: ReadyCheck) -> None:
    """Have the check tried once, unless that is under way."""
    command_id = ready_command_id(node)
    if command_id not in txn.fleet.commands:
        command = CheckReady(
            node_id=node.node_id,
            node_epoch=node.epoch,
            argv=check.argv,
            timeout_ms=check.timeout_ms,
        )
        txn.send(command_id, command)
