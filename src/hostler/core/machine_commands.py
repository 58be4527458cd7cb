"""What is asked of providers about the machine behind a node, and by which ids."""

from __future__ import annotations

from typing import Final

from hostler.core.txn import Txn
from hostler.model import Node
from hostler.model.command import CheckMachine, LaunchMachine, StopMachine
from hostler.model.node import NodePhase, RetireReason

_BIRTH_EPOCH: Final = 1
"""A node has one machine in all its epochs, so what is asked about that has one id: a launch that
is still out when the node is lost is found under it."""

_WITH_MACHINE: Final = (NodePhase.STARTING, NodePhase.READY, NodePhase.DRAINING)


def launch_command_id(node: Node) -> str:
    """Return the id of the command that launches a node's machine."""
    return f"{node.node_id}/launch/{_BIRTH_EPOCH}"


def check_command_id(node: Node) -> str:
    """Return the id of the command that asks whether a node's machine exists."""
    return f"{node.node_id}/check/{_BIRTH_EPOCH}"


def stop_command_id(node: Node) -> str:
    """Return the id of the command that stops a node's machine."""
    return f"{node.node_id}/stop/{node.epoch}"


def has_machine(node: Node) -> bool:
    """Say whether a node's machine is there as far as we know, and nobody has asked it to end."""
    return node.phase in _WITH_MACHINE or (node.phase is NodePhase.STOPPING and node.is_foreign)


def send_launch(txn: Txn, node: Node) -> None:
    """Ask for the machine, as it is configured now; once asked for, it stays what it is."""
    command_id = launch_command_id(node)
    if command_id in txn.fleet.commands:
        return
    pool = txn.fleet.pools.get(node.pool)
    tier = None if pool is None else pool.tier(node.tier)
    offers = () if tier is None else tier.offers
    txn.send(
        command_id,
        LaunchMachine(
            node_id=node.node_id,
            epoch=node.epoch,
            pool=node.pool,
            tier=node.tier,
            provider=node.provider,
            offer=node.offer,
            zone=node.zone,
            made_of=next((offer for offer in offers if offer.name == node.offer), None),
            options_json="{}" if tier is None else tier.options_json,
            boot_ms=node.boot_ms,
        ),
    )


def send_check(txn: Txn, node: Node) -> None:
    """Ask whether the machine exists, if we know which it is."""
    if node.machine_id is None:
        return
    txn.send(
        check_command_id(node),
        CheckMachine(
            node_id=node.node_id,
            pool=node.pool,
            tier=node.tier,
            provider=node.provider,
            machine_id=node.machine_id,
            is_boot_log_wanted=node.phase is NodePhase.STARTING,
        ),
    )


def send_stop(txn: Txn, node: Node) -> None:
    """Ask for the machine's end; without its id, by the label that its launch gave it."""
    txn.send(
        stop_command_id(node),
        StopMachine(
            node_id=node.node_id,
            epoch=node.epoch,
            pool=node.pool,
            tier=node.tier,
            provider=node.provider,
            machine_id=node.machine_id,
            is_boot_log_wanted=node.retire_reason is RetireReason.BOOT_FAILED and not node.boot_log,
        ),
    )
