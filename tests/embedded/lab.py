"""Configurations for embedded fleets, and what tests wait for."""

from __future__ import annotations

from typing import Any

from hostler.embedded import Fleet
from hostler.wire.http import NodeView
from tests.eventually import eventually_async


def fakes(**pool: Any) -> dict[str, Any]:
    """One pool of machines that do not exist."""
    tier = {
        "name": "fakes",
        "kind": "elastic",
        "provider": "fake",
        "node_count_max": 3,
        "offers": [{"name": "small", "shape": {"capacity": 2, "cores": 2}}],
        **pool.pop("tier", {}),
    }
    timing = {
        "heartbeat": "200ms",
        "suspect_after": "2s",
        "fence_after": "20s",
        "lost_after": "40s",
    }
    return {
        "fleet": {"timing": timing},
        "pools": {"runners": {"warm": 1, "tiers": [tier], **pool}},
    }


async def ready_nodes(fleet: Fleet, count: int = 1) -> list[NodeView]:
    """Return the ready nodes once there are so many."""

    async def ready() -> list[NodeView] | None:
        up = [one for one in await fleet.nodes() if one.phase == "ready" and one.is_connected]
        return up if len(up) >= count else None

    found = await eventually_async(ready, what=f"{count} ready nodes")
    assert found is not None
    return found
