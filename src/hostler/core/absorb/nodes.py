"""What operators want of nodes: cordon, uncordon, drain."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hostler.base.ids import NodeId
from hostler.core.events import EventKind
from hostler.core.inputs import (
    ConfirmLoss,
    CordonNode,
    DrainNode,
    EndOrphan,
    LabelNode,
    UncordonNode,
)
from hostler.core.leaving import stay
from hostler.core.limits import LABEL_COUNT_MAX
from hostler.core.txn import Txn
from hostler.model import Node
from hostler.model.node import Cordon, Drain, NodePhase, Origin

_LEAVING: Final = (NodePhase.STOPPING, NodePhase.RETIRED)


def cordon(txn: Txn, one: CordonNode) -> None:
    """Let nothing new onto a node."""
    node = _wanted(txn, one.request_id, one.node_id)
    if node is None:
        return
    txn.accept(one.request_id, node.node_id, is_repeat=node.lasting_cordon is not None)
    if node.lasting_cordon is None:
        txn.change(node, cordon=Cordon(by=one.principal, reason=one.reason, at_ms=txn.now_ms))
        txn.emit(
            EventKind.NODE_CORDONED,
            {"node": node.node_id, "pool": node.pool, "principal": one.principal},
            reason=one.reason,
        )


def label(txn: Txn, one: LabelNode) -> None:
    """Give a node labels; what is on it stays, whatever it asked for."""
    node = _wanted(txn, one.request_id, one.node_id)
    if node is None:
        return
    wanted = {**node.labels, **one.labels}
    labels = {name: value for name, value in sorted(wanted.items()) if value}
    if len(labels) > LABEL_COUNT_MAX:
        told = f"a node has {LABEL_COUNT_MAX} labels at most"
        txn.refuse(one.request_id, "too_many_labels", told)
        return
    is_repeat = labels == node.labels
    txn.accept(one.request_id, node.node_id, is_repeat=is_repeat)
    if not is_repeat:
        txn.change(node, labels=labels)
        txn.emit(
            EventKind.NODE_LABELLED,
            {"node": node.node_id, "pool": node.pool, "principal": one.principal},
            labels=", ".join(f"{name}={value}" for name, value in labels.items()),
        )


def uncordon(txn: Txn, one: UncordonNode) -> None:
    """Let new work onto a node again, and end its drain and its quarantine."""
    node = _wanted(txn, one.request_id, one.node_id)
    if node is None:
        return
    if node.retire_reason is not None:
        txn.refuse(
            one.request_id,
            "node_retiring",
            f"node {node.node_id} is being retired ({node.retire_reason.value})",
            is_conflict=True,
        )
        return
    trusted = node.quarantine
    if trusted is not None and not trusted.is_over:
        trusted = replace(trusted, trial_id=None, over_at_ms=txn.now_ms)
    maintained = node.maintenance
    if maintained is not None:
        maintained = replace(maintained, is_called_off=True)
    is_repeat = (
        node.cordon is None
        and node.drain is None
        and trusted is node.quarantine
        and maintained == node.maintenance
    )
    txn.accept(one.request_id, node.node_id, is_repeat=is_repeat)
    if not is_repeat:
        txn.change(
            node,
            cordon=None,
            drain=None,
            notice=None,
            quarantine=trusted,
            maintenance=maintained,
        )
        stay(txn, node)
        txn.emit(
            EventKind.NODE_UNCORDONED,
            {"node": node.node_id, "pool": node.pool, "principal": one.principal},
        )


def drain(txn: Txn, one: DrainNode) -> None:
    """Cordon a node and have it emptied by an instant; asking again moves the instant."""
    node = _wanted(txn, one.request_id, one.node_id)
    if node is None:
        return
    if one.deadline_ms < 0:
        txn.refuse(one.request_id, "deadline_negative", "a deadline is zero or more from now")
        return
    by = one.principal
    txn.change(
        node,
        cordon=node.lasting_cordon or Cordon(by=by, reason="drain", at_ms=txn.now_ms),
        drain=Drain(
            by=by,
            deadline_at_ms=txn.now_ms + one.deadline_ms,
            is_forced=one.is_forced,
            then_retire=one.then_retire,
        ),
    )
    txn.accept(one.request_id, node.node_id)
    txn.emit(
        EventKind.NODE_DRAIN_STARTED,
        {"node": node.node_id, "pool": node.pool, "principal": by},
        deadline_ms=one.deadline_ms,
        then_retire=one.then_retire,
    )


def confirm_loss(txn: Txn, one: ConfirmLoss) -> None:
    """Let the brake not hold a silent node. It is lost no sooner than its silence allows."""
    node = _wanted(txn, one.request_id, one.node_id)
    if node is None:
        return
    if node.silent_since_at_ms is None:
        txn.refuse(
            one.request_id, "node_not_silent", f"node {node.node_id} is heard of", is_conflict=True
        )
        return
    txn.accept(one.request_id, node.node_id, is_repeat=node.is_loss_confirmed)
    txn.change(node, is_loss_confirmed=True, loss_held_until_at_ms=None)


def end_orphan(txn: Txn, one: EndOrphan) -> None:
    """Take an operator's word that a machine which bears our label is ours to end."""
    node = txn.fleet.nodes.get(one.node_id)
    if node is None:
        txn.refuse(
            one.request_id, "node_not_found", f"there is no node {one.node_id!r}", is_missing=True
        )
        return
    if node.origin is not Origin.ORPHAN:
        txn.refuse(
            one.request_id,
            "node_not_orphan",
            f"node {node.node_id} is no orphan: drain it with --retire to end its machine",
            is_conflict=True,
        )
        return
    txn.accept(one.request_id, node.node_id, is_repeat=not node.is_foreign)
    if node.is_foreign:
        txn.change(node, is_foreign=False, phase_since_at_ms=txn.now_ms)
        txn.emit(
            EventKind.ORPHAN_END_REQUESTED,
            {"node": node.node_id, "principal": one.principal},
            machine=node.machine_id,
            provider=node.provider,
        )


def _wanted(txn: Txn, request_id: str, node_id: NodeId) -> Node | None:
    """Return the node, or refuse and return `None`."""
    node = txn.fleet.nodes.get(node_id)
    if node is None:
        txn.refuse(request_id, "node_not_found", f"there is no node {node_id!r}", is_missing=True)
        return None
    if node.phase in _LEAVING:
        txn.refuse(
            request_id,
            "node_retired" if node.phase is NodePhase.RETIRED else "node_stopping",
            f"node {node_id} is {node.phase.value}",
            is_conflict=True,
        )
        return None
    return node
