"""How long a silent node is given, computed from its record and the settings.

Only silence that was listened to is counted: the record says since when that is.
"""

from __future__ import annotations

from hostler.core import limits
from hostler.model import Node, Settings
from hostler.model.node import Health


def judge_at_ms(settings: Settings, node: Node) -> int | None:
    """Return when the node's health gets worse if nothing is heard until then, or `None`."""
    if node.silent_since_at_ms is None:
        return None
    match node.health:
        case Health.LIVE:
            return node.silent_since_at_ms + settings.suspect_after_ms
        case Health.SUSPECT:
            lost_at_ms = node.silent_since_at_ms + lost_after_ms(settings, node)
            return max(lost_at_ms, node.loss_held_until_at_ms or 0)
        case Health.LOST:
            return None


def lost_after_ms(settings: Settings, node: Node) -> int:
    """Return the silence after which the node's work may be placed elsewhere (INV-FENCE-1).

    Never before a cut-off agent has certainly stopped what it runs there: that takes it the time
    to notice, by the limit that it was told last, and then the longest grace of any of its jobs.
    """
    fence_after_ms = max(settings.fence_after_ms, node.fence_after_ms)
    fenced_ms = fence_after_ms + node.fence_grace_ms + limits.FENCE_MARGIN_MS
    return max(settings.lost_after_ms, fenced_ms)


def check_at_ms(settings: Settings, node: Node) -> int | None:
    """Return when the provider is to be asked whether the node's machine exists, or `None`.

    While silence may mean a dead machine, its provider's word saves most of the wait; for a lost
    node that still holds something, it is the only thing that can end that.
    """
    if node.silent_since_at_ms is None or node.is_machine_gone:
        return None
    if not node.provider or node.machine_id is None:
        return None
    if node.health is Health.LIVE and not node.is_link_down:
        return None
    if node.health is Health.LOST and not node.is_held:
        return None
    if node.checked_at_ms is None:
        return node.silent_since_at_ms
    is_lost = node.health is Health.LOST
    return node.checked_at_ms + (settings.list_every_ms if is_lost else settings.suspect_after_ms)
