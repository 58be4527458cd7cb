"""What is said of machines that their provider wants back."""

from __future__ import annotations

from typing import Final

from hostler.core.events import EventKind
from hostler.core.txn import Txn
from hostler.model import Node
from hostler.model.node import NodePhase, Notice, NoticeKind

JITTER_MS: Final = 2_000
"""The same end, told again, may seem to be earlier by so much."""

_LEAVING: Final = (NodePhase.STOPPING, NodePhase.RETIRED)


def told(txn: Txn, node: Node, kind: NoticeKind, ends_at_ms: int, source: str) -> None:
    """Remember a notice; only a worse one, or an earlier end, is news."""
    known = node.notice
    if node.phase in _LEAVING:
        return
    if known is not None:
        is_worse = kind is NoticeKind.TERMINATE and known.kind is NoticeKind.REBALANCE
        is_earlier = kind is known.kind and ends_at_ms < known.ends_at_ms - JITTER_MS
        if not is_worse and not is_earlier:
            return
    txn.change(
        node,
        notice=Notice(kind=kind, ends_at_ms=ends_at_ms, source=source, noticed_at_ms=txn.now_ms),
    )
    txn.emit(
        EventKind.NODE_NOTICE_RECEIVED,
        {"node": node.node_id, "pool": node.pool},
        notice=kind.value,
        source=source,
        left_ms=ends_at_ms - txn.now_ms,
    )
