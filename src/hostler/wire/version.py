"""Which versions of the agent link two peers can speak with each other.

Both sides say which range they speak; the newest version that both know is used. A peer ignores
fields and kinds of message that it does not know, so a version is raised only for a change that an
older peer would *misread*.
"""

from __future__ import annotations

from typing import Final

import msgspec


class ProtocolRange(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of the link that one peer speaks, both ends inclusive."""

    oldest: int
    newest: int


LINK_PROTOCOL: Final = ProtocolRange(oldest=1, newest=1)
"""What this build speaks."""


def negotiate(ours: ProtocolRange, theirs: ProtocolRange) -> int | None:
    """The newest version that both peers speak, or `None` when there is none."""
    newest = min(ours.newest, theirs.newest)
    return newest if newest >= max(ours.oldest, theirs.oldest) else None
