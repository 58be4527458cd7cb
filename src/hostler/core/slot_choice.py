"""Which slot a lease gets: the one answer to *is there one for it*, and *which*.

Leasing grants by it, invariants check by it, and explanations tell by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.model import Lease, Node

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


def slot_for(fleet: Fleet, lease: Lease) -> Node | None:
    """Return the node whose slot a waiting lease gets now, or `None`.

    The node of its affinity comes first, then idle nodes, then partly filled ones. A key at its cap
    gets slots only on nodes that it holds already.
    """
    free = fleet.index.nodes_free
    preferred = fleet.nodes.get(lease.affinity_node_id)
    line = fleet.index.leases_waiting
    if line.is_at_cap(lease.pool, lease.fairness_key):
        own = [fleet.nodes[key] for key in line.held_nodes(lease.pool, lease.fairness_key)]
        fitting = [node for node in own if free.suits(node, lease)]
        if lease.is_pinned:
            return preferred if preferred in fitting else None
        return preferred if preferred in fitting else next(iter(fitting), None)
    if preferred is not None and free.suits(preferred, lease):
        return preferred
    return None if lease.is_pinned else fleet.nodes.get(free.first(lease))
