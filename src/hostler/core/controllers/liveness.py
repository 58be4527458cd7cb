"""Liveness: turns silence, and the provider's word, into suspect and lost.

Reads:    nodes.
Writes:   nodes (health; the epoch rises when one is lost).
Sends:    CheckMachine.
Keeps:    INV-FENCE-1 (nothing is placed elsewhere before the old holder has stopped).
Waits on: Reason.SILENT, Reason.MASS_LOSS_BRAKE.

Silence is counted from the record, which counts only what was listened to. Many nodes falling
silent at once say more about us than about them, so only so many may be lost in a window; a
machine that its provider says is gone is not silent but dead, and is not held back. A provider that
says so while the agent speaks is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hostler.base.units import format_duration
from hostler.core import outbox, silence
from hostler.core.events import EventKind
from hostler.core.machine_commands import check_command_id, send_check
from hostler.core.txn import Txn
from hostler.model import Node, Settings
from hostler.model.node import Health, NodePhase, Origin, RetireReason
from hostler.model.reason import Reason

READS: Final = (Node,)

_LISTENED_TO: Final = (NodePhase.READY, NodePhase.DRAINING)
_UNTOUCHED: Final = (NodePhase.REQUESTED, NodePhase.STOPPING, NodePhase.RETIRED)


def reconcile(txn: Txn) -> None:
    """Judge every node that has changed or whose patience has run out."""
    settings = txn.fleet.settings
    if settings is None:
        return
    brake = _Brake(txn, settings)
    for node in txn.changed(Node):
        if _is_well(node) or node.phase in _UNTOUCHED:
            continue
        if node.is_machine_gone and _is_heard(node):
            _doubt_gone(txn, node)
        elif node.is_machine_gone:
            _machine_gone(txn, node)
        elif node.phase not in _LISTENED_TO:
            continue
        elif node.silent_since_at_ms is None:
            _heard(txn, node)
        else:
            _silent(txn, settings, node, brake)
    brake.tell()


def _is_well(node: Node) -> bool:
    return (
        node.silent_since_at_ms is None
        and node.health is Health.LIVE
        and node.checked_at_ms is None
        and not node.is_machine_gone
    )


def _heard(txn: Txn, node: Node) -> None:
    """Trust a node again."""
    outbox.withdraw(txn, check_command_id(node))
    txn.clear_note(node.node_id)
    changes = {
        "checked_at_ms": None,
        "loss_held_until_at_ms": None,
        "is_loss_confirmed": False,
    }
    if node.health is Health.LIVE:
        txn.change(node, **changes)
        return
    txn.change(node, health=Health.LIVE, health_since_at_ms=txn.now_ms, **changes)
    txn.emit(
        EventKind.NODE_HEARD_AGAIN,
        {"node": node.node_id, "pool": node.pool},
        was=node.health.value,
    )


def _silent(txn: Txn, settings: Settings, node: Node, brake: _Brake) -> None:
    silent_ms = txn.now_ms - (node.silent_since_at_ms or 0)
    txn.note(node.node_id, Reason.SILENT, f"nothing was heard for {format_duration(silent_ms)}")
    if node.health is Health.LIVE and _is_due(txn, silence.judge_at_ms(settings, node)):
        node = txn.change(node, health=Health.SUSPECT, health_since_at_ms=txn.now_ms)
        txn.emit(
            EventKind.NODE_SUSPECTED,
            {"node": node.node_id, "pool": node.pool},
            silent_ms=silent_ms,
        )
    if node.health is Health.SUSPECT and _is_due(txn, silence.judge_at_ms(settings, node)):
        is_held = brake.is_on() and not node.is_loss_confirmed
        node = brake.hold(node) if is_held else _lose(txn, node, silent_ms)
    if _is_due(txn, silence.check_at_ms(settings, node)):
        send_check(txn, txn.change(node, checked_at_ms=txn.now_ms))


def _is_due(txn: Txn, at_ms: int | None) -> bool:
    return at_ms is not None and at_ms <= txn.now_ms


def _lose(txn: Txn, node: Node, silent_ms: int) -> Node:
    """Give a node up for its silence; from here on its agent's old word counts no more."""
    outbox.withdraw(txn, check_command_id(node))
    txn.emit(
        EventKind.NODE_LOST,
        {"node": node.node_id, "pool": node.pool},
        why="silent",
        silent_ms=silent_ms,
    )
    return txn.change(
        node,
        health=Health.LOST,
        health_since_at_ms=txn.now_ms,
        epoch=node.epoch + 1,
        checked_at_ms=None,
        loss_held_until_at_ms=None,
        is_loss_confirmed=False,
    )


def _machine_gone(txn: Txn, node: Node) -> None:
    """Give a node up because its provider says that the machine no longer exists.

    A box that joined by itself may be switched on again; its node waits for that.
    """
    outbox.withdraw(txn, check_command_id(node))
    is_for_good = node.origin is not Origin.JOINED
    reason = node.retire_reason or (RetireReason.GONE if is_for_good else None)
    if node.health is Health.LOST:
        txn.change(node, retire_reason=reason)
        return
    txn.emit(EventKind.NODE_LOST, {"node": node.node_id, "pool": node.pool}, why="machine_gone")
    txn.change(
        node,
        health=Health.LOST,
        health_since_at_ms=txn.now_ms,
        epoch=node.epoch + 1,
        silent_since_at_ms=None,
        retire_reason=reason,
    )


def _is_heard(node: Node) -> bool:
    """Say whether the agent speaks at present, as far as we have noticed."""
    return (
        node.phase in _LISTENED_TO
        and node.health is Health.LIVE
        and node.silent_since_at_ms is None
    )


def _doubt_gone(txn: Txn, node: Node) -> None:
    """Believe an agent that speaks more than a provider that says its machine is gone.

    If it falls silent, the provider is asked again, and then believed.
    """
    outbox.withdraw(txn, check_command_id(node))
    if node.gone_doubted_at_ms is None:
        txn.emit(
            EventKind.NODE_GONE_DOUBTED,
            {"node": node.node_id, "pool": node.pool},
            provider=node.provider,
            machine=node.machine_id,
        )
    txn.change(
        node,
        is_machine_gone=False,
        checked_at_ms=None,
        gone_doubted_at_ms=node.gone_doubted_at_ms or txn.now_ms,
    )


class _Brake:
    """How many nodes may still be lost for silence in the present window."""

    def __init__(self, txn: Txn, settings: Settings) -> None:
        self._txn = txn
        self._settings = settings
        self._held_count = 0

    def is_on(self) -> bool:
        """Say whether as many have been lost as may be."""
        return len(self._lost_at_ms()) >= self._count_max()

    def _count_max(self) -> int:
        count, percent = self._settings.lost_node_count_max, self._settings.lost_node_percent_max
        if percent is None:
            return count
        by_phase = self._txn.fleet.index.nodes_by_phase
        present_count = sum(by_phase.count(phase.value) for phase in _LISTENED_TO)
        return min(count, max(1, present_count * percent // 100))

    def _lost_at_ms(self) -> list[int]:
        nodes = self._txn.fleet.nodes
        begin_at_ms = self._txn.now_ms - self._settings.brake_window_ms
        lost: Iterable[Node] = (nodes[key] for key in self._txn.fleet.index.nodes_lost.keys("all"))
        return [node.health_since_at_ms for node in lost if node.health_since_at_ms > begin_at_ms]

    def hold(self, node: Node) -> Node:
        """Leave a node suspect until the window has moved on."""
        until_at_ms = min(self._lost_at_ms()) + self._settings.brake_window_ms
        if node.loss_held_until_at_ms is None:
            self._held_count += 1
        window = format_duration(self._settings.brake_window_ms)
        self._txn.note(
            node.node_id,
            Reason.MASS_LOSS_BRAKE,
            f"{self._count_max()} nodes were lost within {window}",
        )
        return self._txn.change(node, loss_held_until_at_ms=until_at_ms)

    def tell(self) -> None:
        """Tell people once when nodes begin to be held back."""
        if self._held_count:
            self._txn.emit(
                EventKind.RECOVERY_HELD_BACK,
                {},
                held_node_count=self._held_count,
                lost_node_count_max=self._count_max(),
            )
