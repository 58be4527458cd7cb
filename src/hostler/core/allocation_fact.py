"""What an agent says of one allocation; part of its hello and of its reports."""

from __future__ import annotations

import msgspec

from hostler.base.ids import AllocationId
from hostler.model.allocation import Ended


class AllocationFact(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent says of one allocation."""

    allocation_id: AllocationId
    epoch: int
    phase: str
    """`starting`, `running`, `ready`, `unready`, `stopping` or `ended`."""
    started_at_ms: int | None = None
    config_written: int = 0
    config_applied: int = 0
    ended: Ended | None = None
