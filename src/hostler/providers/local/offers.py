"""What this host could offer. Tiers declare their own shapes; these are for looking things up."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hostler.model.pool import Offer
from hostler.model.shape import Shape


def host_offers() -> Sequence[Offer]:
    """Return one offer: everything that this host has."""
    core_count = os.cpu_count() or 1
    return (
        Offer(
            name="host",
            shape=Shape(
                capacity=core_count,
                cores_milli=core_count * 1_000,
                memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            ),
        ),
    )
