"""What a provider says of one machine of ours; part of how commands to providers end."""

from __future__ import annotations

import msgspec

from hostler.base.ids import MachineId, NodeId
from hostler.model.node import NoticeKind


class MachineFact(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider says of one machine of ours."""

    machine_id: MachineId
    node_id: NodeId | None = None
    """From its label."""
    epoch: int = 0
    pool: str = ""
    tier: str = ""
    created_at_ms: int = 0
    started_at_ms: int | None = None
    """When it began to cost; `None`: when it was created."""
    hostname: str = ""
    notice: NoticeKind | None = None
    """It is about to be taken back."""
    ends_at_ms: int = 0
    """When that happens."""
