"""What agents say: who they are, what they have, what runs, and that they are heard or not."""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec.structs import replace

from hostler.base.ids import NodeId
from hostler.core import outbox
from hostler.core.absorb import notices, reports
from hostler.core.inputs import (
    AgentSaidHello,
    AllocationReported,
    ContactResumed,
    FenceLimitKept,
    InventoryReported,
    JoinAgent,
    NoticeReported,
    SilenceNoticed,
)
from hostler.core.keys import tier_key
from hostler.core.provided import with_provided
from hostler.core.txn import Txn
from hostler.model import Node, Pool
from hostler.model.node import Health, NodePhase, Origin
from hostler.model.pool import Tier, TierKind
from hostler.model.shape import Shape

T = TypeVar("T")

_LEAVING: Final = (NodePhase.STOPPING, NodePhase.RETIRED)


def join(txn: Txn, one: JoinAgent) -> None:
    """Let an agent be the node that it was launched as, or one of a fixed tier."""
    if one.node_id is not None:
        _claim(txn, one, one.node_id)
        return
    pool = txn.fleet.pools.get(one.pool)
    tier = None if pool is None else pool.tier(one.tier)
    if pool is None or tier is None:
        name = tier_key(one.pool, one.tier)
        txn.refuse(
            one.request_id,
            "tier_not_found",
            f"there is no tier {name!r}: check the join token's"
            " pool and tier against the configuration",
            is_missing=True,
        )
        return
    known = _same_machine(txn, one, tier)
    if known is not None:
        _claim(txn, one, known.node_id)
        return
    if _is_admitted(txn, one, pool, tier):
        _create(txn, one, pool, tier)


def _claim(txn: Txn, one: JoinAgent, node_id: NodeId) -> None:
    """Answer an agent that says which node it is; asking again changes nothing."""
    node = txn.fleet.nodes.get(node_id)
    if node is None:
        txn.refuse(
            one.request_id, "node_not_found", f"there is no node {node_id!r}", is_missing=True
        )
    elif node.phase in _LEAVING or node.retire_reason is not None:
        txn.refuse(
            one.request_id,
            "node_retiring",
            f"node {node_id} is being retired; join again as a new one when it is gone",
            is_conflict=True,
        )
    elif node.origin is Origin.JOINED and one.machine_id != node.machine_id:
        txn.refuse(
            one.request_id,
            "machine_mismatch",
            f"node {node_id} is another machine ({node.machine_id})",
            is_conflict=True,
        )
    else:
        txn.change(node, hostname=one.hostname or node.hostname)
        txn.accept(one.request_id, node_id, is_repeat=node.phase is NodePhase.READY)


def _same_machine(txn: Txn, one: JoinAgent, tier: Tier) -> Node | None:
    """Find the node that this machine already is, in the tier that it wants to join."""
    if one.machine_id is None:
        return None
    for key in txn.fleet.index.nodes_by_machine.keys(f"{tier.provider}/{one.machine_id}"):
        node = txn.fleet.nodes[key]
        is_here = node.pool == one.pool and node.tier == one.tier
        if is_here and node.origin is Origin.JOINED and node.phase is not NodePhase.RETIRED:
            return node
    return None


def _is_admitted(txn: Txn, one: JoinAgent, pool: Pool, tier: Tier) -> bool:
    """Say whether the tier takes a new node, or refuse."""
    count = txn.fleet.index.nodes_by_tier.count(tier_key(pool.name, tier.name))
    if not pool.is_enabled:
        code, message = "pool_disabled", f"pool {pool.name!r} is disabled"
    elif tier.kind is not TierKind.FIXED:
        code = "tier_not_fixed"
        message = f"tier {tier.name!r} launches its own machines; join a fixed tier"
    elif tier.node_count_max and count >= tier.node_count_max:
        code, message = "tier_full", f"tier {tier.name!r} has {count} nodes, its maximum"
    else:
        return True
    txn.refuse(one.request_id, code, message, is_conflict=True)
    return False


def _create(txn: Txn, one: JoinAgent, pool: Pool, tier: Tier) -> None:
    node = txn.put(
        Node(
            node_id=NodeId(txn.mint("n")),
            pool=pool.name,
            tier=tier.name,
            provider=tier.provider,
            origin=Origin.JOINED,
            zone=tier.zone,
            reliability=tier.reliability,
            phase=NodePhase.STARTING,
            phase_since_at_ms=txn.now_ms,
            created_at_ms=txn.now_ms,
            boot_ms=tier.boot_ms,
            health_since_at_ms=txn.now_ms,
            machine_id=one.machine_id,
            hostname=one.hostname,
            slot_count=pool.slot_count,
            price_microusd_per_hour=tier.price_microusd_per_hour,
            started_at_ms=txn.now_ms,
        )
    )
    txn.accept(one.request_id, node.node_id)


def hello(txn: Txn, one: AgentSaidHello) -> None:
    """Take in everything that an agent has, and let it have everything that we want of it."""
    node = txn.fleet.nodes.get(one.node_id)
    if node is None or node.phase is NodePhase.RETIRED or one.incarnation < node.incarnation:
        return
    node = txn.put(
        replace(
            _with_shape(node, one.shape),
            incarnation=one.incarnation,
            greeted_epoch=node.epoch,
            hostname=one.hostname or node.hostname,
            silent_since_at_ms=None,
            is_link_down=False,
            # A launched machine that is gone stays so; a box of our own has been switched on.
            is_machine_gone=node.is_machine_gone and node.origin is not Origin.JOINED,
            ended_at_ms=None if node.origin is Origin.JOINED else node.ended_at_ms,
        )
    )
    outbox.make_due(txn, f"node:{node.node_id}")
    for fact in one.allocations:
        reports.absorb_fact(txn, node, fact)
    reports.end_unmentioned(txn, node, one.allocations)


def inventory(txn: Txn, one: InventoryReported) -> None:
    """Take in what a node has in total."""
    node = txn.fleet.nodes.get(one.node_id)
    if node is not None and node.phase is not NodePhase.RETIRED:
        txn.put(_with_shape(node, one.shape))


def notice(txn: Txn, one: NoticeReported) -> None:
    """Take in that a node's machine is about to be taken back."""
    node = txn.fleet.nodes.get(one.node_id)
    if node is not None:
        notices.told(txn, node, one.kind, txn.now_ms + max(0, one.left_ms), "agent")


def _with_shape(node: Node, shape: Shape | None) -> Node:
    """Return the node with what its agent reports; what it does not know, the offer has promised.

    Equal parts keep their identity: indexes tell by it that nothing about the shape has changed.
    """
    if shape is None:
        return node
    known, provided = node.shape, node.provided
    capabilities = _told(shape.capabilities, known.capabilities)
    if provided and shape.capabilities is not None:
        added = [c for c in known.capabilities or () if c.name in provided]
        told, provided = with_provided(shape, added)
        capabilities = told.capabilities
    merged = Shape(
        capacity=_told(shape.capacity, known.capacity),
        cores_milli=_told(shape.cores_milli, known.cores_milli),
        memory_bytes=_told(shape.memory_bytes, known.memory_bytes),
        capabilities=capabilities,
        devices=shape.devices,
    )
    return replace(
        node,
        shape=known if merged == known else merged,
        provided=provided,
        is_inventory_reported=True,
    )


def _told(now: T | None, before: T | None) -> T | None:
    return before if now is None else now


def allocation(txn: Txn, one: AllocationReported) -> None:
    """Take in what became of one allocation."""
    node = txn.fleet.nodes.get(one.node_id)
    if node is not None and node.phase is not NodePhase.RETIRED:
        reports.absorb_fact(txn, node, one.fact)


def silence(txn: Txn, one: SilenceNoticed) -> None:
    """Remember since when a node is silent; a later beginning of the same silence says nothing."""
    node = txn.fleet.nodes.get(one.node_id)
    if node is None or node.phase not in (NodePhase.READY, NodePhase.DRAINING):
        return
    since_at_ms = min(one.since_at_ms, txn.now_ms)
    if node.silent_since_at_ms is not None:
        since_at_ms = min(since_at_ms, node.silent_since_at_ms)
    txn.change(
        node,
        silent_since_at_ms=since_at_ms,
        is_link_down=node.is_link_down or one.is_link_down,
    )


def fence_limit(txn: Txn, one: FenceLimitKept) -> None:
    """Remember how long a node's agent may go on after it was cut off."""
    node = txn.fleet.nodes.get(one.node_id)
    if node is not None and node.phase is not NodePhase.RETIRED:
        txn.change(node, fence_after_ms=one.fence_after_ms)


def contact(txn: Txn, one: ContactResumed) -> None:
    """Remember that a node is heard again. One that was lost must say hello: its work has gone.

    It may have done so, and fallen silent again before anybody looked.
    """
    node = txn.fleet.nodes.get(one.node_id)
    if node is None:
        return
    if node.health is not Health.LOST or node.greeted_epoch == node.epoch:
        txn.change(node, silent_since_at_ms=None, is_link_down=False)
