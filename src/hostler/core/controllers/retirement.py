"""Retirement: takes a node that shall go from ready to gone, and never gives up on its machine.

Reads:    nodes.
Writes:   nodes (READY to DRAINING to STOPPING to RETIRED; STARTING to STOPPING), allocations
          (ended, of nodes that never came or are gone).
Sends:    StopMachine.
Keeps:    INV-NODE-5 (a machine that is to go is being stopped until its provider says gone).
Waits on: Reason.IN_USE, Reason.BOOTING, Reason.STOP_UNCONFIRMED, Reason.FOREIGN_MACHINE.

`retire_reason` is all that says that a node shall go. Drain empties it meanwhile. Only the
provider's word ends a machine's record: until then it is counted and paid for. While a launch is
out nothing is stopped that it may be making (`provisioning` does not try it again). A machine that
joined by itself is nobody's to stop: its node retires once nothing is held there. One whose label
names a node that this fleet never had is stopped when an operator has said that it is ours.
"""

from __future__ import annotations

from typing import Final

from hostler.core import holds, limits, outbox
from hostler.core.events import EventKind
from hostler.core.machine_commands import (
    check_command_id,
    launch_command_id,
    send_stop,
    stop_command_id,
)
from hostler.core.txn import Txn
from hostler.model import Node
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.lease import LeaseOutcome
from hostler.model.node import Health, NodePhase, NodeTrigger, Origin, RetireReason
from hostler.model.reason import Reason

READS: Final = (Node,)


def reconcile(txn: Txn) -> None:
    """Take every node that shall go as far as there is nothing to wait for."""
    for node in txn.changed(Node):
        if node.phase is NodePhase.STOPPING:
            _stop(txn, node)
        elif node.retire_reason is not None:
            _leave(txn, node)


def _leave(txn: Txn, node: Node) -> None:
    match node.phase:
        case NodePhase.READY | NodePhase.DRAINING:
            if not node.is_held or node.health is Health.LOST:
                _begin_stop(txn, node)
                return
            txn.note(node.node_id, Reason.IN_USE, "retires when nothing is held on it")
            # A last use that its holder never takes up was none (`holds.settle_lease`).
            if node.phase is NodePhase.READY and node.retire_reason is not RetireReason.USED_UP:
                txn.move(node, NodeTrigger.RETIREMENT_STARTED, is_spare=False, spare_band=None)
        case NodePhase.STARTING:
            _begin_stop(txn, node)
        case NodePhase.REQUESTED | NodePhase.STOPPING | NodePhase.RETIRED:
            pass  # provisioning knows whether a machine may exist


def _begin_stop(txn: Txn, node: Node) -> None:
    reason = "" if node.retire_reason is None else node.retire_reason.value
    txn.emit(
        EventKind.NODE_STOPPING, {"node": node.node_id, "pool": node.pool}, retire_reason=reason
    )
    outbox.withdraw(txn, check_command_id(node))
    stopping = txn.move(
        node,
        NodeTrigger.STOP_STARTED,
        idle_since_at_ms=None,
        is_spare=False,
        spare_band=None,
    )
    _stop(txn, stopping)


def _stop(txn: Txn, node: Node) -> None:
    """Ask for the machine's end until its provider says gone."""
    _end_reservations(txn, node)
    if node.is_machine_gone or not _is_ours_to_stop(node):
        _retire(txn, node)
        return
    if node.is_foreign:
        txn.note(
            node.node_id,
            Reason.FOREIGN_MACHINE,
            f"{node.machine_id} of {node.provider} is labelled as a node that we never had",
        )
        return
    if node.machine_id is None and launch_command_id(node) in txn.fleet.commands:
        txn.note(node.node_id, Reason.BOOTING, "its launch is out; it is stopped when it answers")
        return
    txn.note(node.node_id, Reason.STOP_UNCONFIRMED, f"{node.provider} has not said gone")
    send_stop(txn, node)
    if not node.is_stuck and node.phase_since_at_ms + limits.STUCK_AFTER_MS <= txn.now_ms:
        _say_stuck(txn, node)


def _say_stuck(txn: Txn, node: Node) -> None:
    """Tell people once that a machine does not die; it is asked to end for as long as it takes."""
    entry = txn.fleet.commands[stop_command_id(node)]
    txn.emit(
        EventKind.NODE_STUCK,
        {"node": node.node_id, "pool": node.pool},
        provider=node.provider,
        machine=node.machine_id,
        attempt_count=entry.attempt_count,
        code=entry.last_code,
        message=entry.last_message,
    )
    txn.change(node, is_stuck=True)


def _is_ours_to_stop(node: Node) -> bool:
    return node.provider != "" and node.origin is not Origin.JOINED


def _end_reservations(txn: Txn, node: Node) -> None:
    """Give up what was to start on a machine that will not come."""
    for key in txn.fleet.index.allocations_by_node.keys(node.node_id):
        allocation = txn.fleet.allocations[key]
        if allocation.phase is AllocationPhase.RESERVED:
            ended = Ended(cause=EndCause.LAUNCH_FAILED, message=f"{node.node_id} never came")
            holds.end_allocation(txn, allocation, ended)


def _retire(txn: Txn, node: Node) -> None:
    """End the record, and with it whatever was still held on a machine that is gone."""
    fleet = txn.fleet
    message = f"{node.node_id} is gone"
    for key in fleet.index.leases_by_node.keys(node.node_id):
        holds.settle_lease(txn, fleet.leases[key], LeaseOutcome.NODE_LOST, message)
    for key in fleet.index.allocations_by_node.keys(node.node_id):
        ended = Ended(cause=EndCause.NODE_LOST, message=message)
        holds.end_allocation(txn, fleet.allocations[key], ended)
    for key in fleet.index.commands_by_target.keys(f"node:{node.node_id}"):
        outbox.withdraw(txn, key)
    outbox.withdraw(txn, stop_command_id(node))
    outbox.withdraw(txn, launch_command_id(node))
    txn.clear_note(node.node_id)
    txn.move(fleet.nodes[node.node_id], NodeTrigger.GONE)
    txn.emit(
        EventKind.NODE_RETIRED,
        {"node": node.node_id, "pool": node.pool},
        retire_reason="" if node.retire_reason is None else node.retire_reason.value,
        machine=node.machine_id,
    )
