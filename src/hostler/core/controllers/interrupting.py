"""Interrupting: acts before a machine goes that its provider wants back.

Reads:    nodes.
Writes:   nodes (drained by an instant before the end; why they retire), cooldowns (of offers that
          are taken back again and again).
Sends:    nothing (drain moves the work, retirement ends the machine).
Keeps:    INV-NOTICE-1 (a node whose machine is to end takes no new work).
Waits on: nothing.

Before an end that is announced, the node is drained by force: what has a second place ready by then
has moved, and what has not is stopped cleanly while there is still time for its grace. As the loss
is not of our choosing, nobody waits for anybody's turn at the deadline. Where the machine only may
be taken back, it is drained like any other, and nothing is stopped that finds no place.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hostler.core import limits
from hostler.core.events import EventKind
from hostler.core.leaving import PATIENCE_MS
from hostler.core.txn import Txn
from hostler.core.uses import offer_key
from hostler.model import Cooldown, Node
from hostler.model.node import (
    Cordon,
    Drain,
    NodePhase,
    Notice,
    NoticeKind,
    Origin,
    RetireReason,
)
from hostler.model.pool import Reliability

READS: Final = (Node,)

INTERRUPTED: Final = "interrupted"
"""Code of a cooldown of an offer whose machines are taken back."""

_THERE: Final = (NodePhase.STARTING, NodePhase.READY, NodePhase.DRAINING)


def reconcile(txn: Txn) -> None:
    """Heed every notice that is news."""
    for node in txn.changed(Node):
        notice = node.notice
        if notice is None or notice.is_heeded or node.phase not in _THERE:
            continue
        if notice.kind is NoticeKind.TERMINATE:
            _empty_in_time(txn, node, notice)
        else:
            _empty_if_possible(txn, node, notice)


def _empty_in_time(txn: Txn, node: Node, notice: Notice) -> None:
    is_ours = node.origin is Origin.LAUNCHED
    deadline_at_ms = max(txn.now_ms, notice.ends_at_ms - _margin_ms(txn, node))
    if node.drain is not None and node.drain.is_forced:
        deadline_at_ms = min(deadline_at_ms, node.drain.deadline_at_ms)
    reason = node.retire_reason or (RetireReason.INTERRUPTED if is_ours else None)
    drain = Drain(
        by=notice.source, deadline_at_ms=deadline_at_ms, is_forced=True, then_retire=is_ours
    )
    _drain(txn, node, notice, drain, reason)
    if is_ours and node.reliability is Reliability.INTERRUPTIBLE:
        _remember(txn, node)


def _margin_ms(txn: Txn, node: Node) -> int:
    """Return how long before the end a clean stop of all that is there must begin."""
    keys = txn.fleet.index.allocations_by_node.keys(node.node_id)
    graces = (txn.fleet.allocations[key].launch.stop_grace_ms for key in keys)
    return max(graces, default=0) + limits.NOTICE_MARGIN_MS


def _empty_if_possible(txn: Txn, node: Node, notice: Notice) -> None:
    if node.drain is not None:
        txn.change(node, notice=replace(notice, is_heeded=True))
        return
    drain = Drain(
        by=notice.source,
        deadline_at_ms=txn.now_ms + PATIENCE_MS,
        then_retire=node.origin is Origin.LAUNCHED,
    )
    _drain(txn, node, notice, drain, node.retire_reason)


def _drain(txn: Txn, node: Node, notice: Notice, drain: Drain, reason: RetireReason | None) -> None:
    cordon = Cordon(by=notice.source, reason=f"{notice.kind.value} notice", at_ms=txn.now_ms)
    txn.change(
        node,
        notice=replace(notice, is_heeded=True),
        cordon=node.lasting_cordon or cordon,
        drain=drain,
        retire_reason=reason,
    )
    txn.emit(
        EventKind.NODE_DRAIN_STARTED,
        {"node": node.node_id, "pool": node.pool},
        why=cordon.reason,
        deadline_ms=drain.deadline_at_ms - txn.now_ms,
        then_retire=drain.then_retire,
    )


def _remember(txn: Txn, node: Node) -> None:
    """Leave an offer alone whose machines are taken back a second time within a short while."""
    key = offer_key(node.pool, node.tier, node.offer)
    before = txn.fleet.cooldowns.get(key)
    if before is not None and before.failed_at_ms == txn.now_ms:
        return  # several that go together are one interruption
    count = 1
    if before is not None and before.code == INTERRUPTED:
        count += before.failure_count
    pause_ms = 0 if count == 1 else limits.COOLDOWN_MS_MAX
    txn.put(
        Cooldown(
            cooldown_id=key,
            failure_count=count,
            failed_at_ms=txn.now_ms,
            until_at_ms=txn.now_ms + pause_ms,
            code=INTERRUPTED,
            message=f"its provider took {node.node_id} back",
        )
    )
