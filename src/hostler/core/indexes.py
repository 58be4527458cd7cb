"""The indexes of the fleet: each question that a controller asks often, answered without a scan."""

from __future__ import annotations

from typing import Any

from hostler.core.tables import LineIndex, Order, SetIndex
from hostler.model import Allocation, Lease, Node, OutboxEntry, Replica, Token
from hostler.model.allocation import AllocationPhase
from hostler.model.command import CheckMachine, LaunchMachine, ListMachines, StopMachine
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase
from hostler.model.record import Record
from hostler.model.replica import ReplicaPhase


def tier_key(pool: str, tier: str) -> str:
    """Return the bucket of a tier."""
    return f"{pool}/{tier}"


def fairness_bucket(pool: str, fairness_key: str) -> str:
    """Return the bucket of one key's leases in one pool."""
    return f"{pool}\x00{fairness_key}"


def node_class(node: Node) -> str:
    """Return the bucket of nodes that offer the same to a lease: an offer, or one own box."""
    kind = node.offer or f"={node.node_id}"
    return f"{node.pool}\x00{node.tier}\x00{kind}"


def _is_free_for_lease(node: Node) -> bool:
    return (
        node.takes_work
        and not node.is_spare
        and node.retire_reason is None
        and node.allocation_count == 0
        and node.lease_count < node.slot_count
    )


def _free_place(node: Node) -> tuple[str, Order] | None:
    """Fullest first, then longest idle: a node is emptied or filled, and wear is even."""
    if not _is_free_for_lease(node):
        return None
    return node.pool, (-node.lease_count, node.idle_since_at_ms or 0, node.node_id)


def _free_class_place(node: Node) -> tuple[str, Order] | None:
    if not _is_free_for_lease(node):
        return None
    return node_class(node), (-node.lease_count, node.idle_since_at_ms or 0, node.node_id)


def _idle_bucket(node: Node) -> str | None:
    is_idle = node.takes_work and not node.is_held and node.retire_reason is None
    return node.pool if is_idle else None


def _command_bucket(entry: OutboxEntry) -> str:
    match entry.command:
        case LaunchMachine() | StopMachine() | CheckMachine() | ListMachines():
            return f"provider:{entry.command.provider}"
        case _:
            return f"node:{entry.command.node_id}"


class Indexes:
    """All indexes, fed by every write."""

    def __init__(self) -> None:
        self.nodes_by_pool = SetIndex[Node](
            lambda n: None if n.phase is NodePhase.RETIRED else n.pool
        )
        self.nodes_by_tier = SetIndex[Node](
            lambda n: None if n.phase is NodePhase.RETIRED else tier_key(n.pool, n.tier)
        )
        self.nodes_by_phase = SetIndex[Node](lambda n: n.phase.value)
        self.nodes_by_pool_phase = SetIndex[Node](lambda n: f"{n.pool}/{n.phase.value}")
        self.nodes_by_machine = SetIndex[Node](
            lambda n: f"{n.provider}/{n.machine_id}" if n.machine_id else None
        )
        self.nodes_spare = SetIndex[Node](
            lambda n: n.pool if n.is_spare and n.phase is not NodePhase.RETIRED else None
        )
        self.nodes_idle = SetIndex[Node](_idle_bucket)
        """Ready, live, holding nothing, spare or not."""
        self.nodes_free = LineIndex[Node](_free_place)
        """Nodes with a free slot for a lease, by pool."""
        self.nodes_free_by_class = LineIndex[Node](_free_class_place)
        self.allocations_by_node = SetIndex[Allocation](lambda a: a.node_id if a.is_live else None)
        self.allocations_by_replica = SetIndex[Allocation](
            lambda a: a.replica_id if a.is_live else None
        )
        self.allocations_by_bundle = SetIndex[Allocation](
            lambda a: a.bundle_id if a.is_live else None
        )
        self.allocations_by_phase = SetIndex[Allocation](
            lambda a: None if a.phase is AllocationPhase.ENDED else a.phase.value
        )
        self.allocations_reserved = SetIndex[Allocation](
            lambda a: a.node_id if a.phase is AllocationPhase.RESERVED else None
        )
        """By node: what starts when the node is ready."""
        self.replicas_by_bundle = SetIndex[Replica](lambda r: r.bundle_id)
        self.replicas_by_phase = SetIndex[Replica](lambda r: r.phase.value)
        self.replicas_pending = LineIndex[Replica](
            lambda r: (
                (r.demand, (r.band.rank, r.waiting_since_at_ms, r.bundle_id, r.job, r.index))
                if r.phase is ReplicaPhase.PENDING
                else None
            )
        )
        """Who wants a place now, by demand, the most urgent first."""
        self.replicas_by_bundle_phase = SetIndex[Replica](
            lambda r: f"{r.bundle_id}/{r.phase.value}"
        )
        self.leases_by_node = SetIndex[Lease](
            lambda x: x.node_id if x.phase is LeasePhase.HELD else None
        )
        self.leases_by_key = SetIndex[Lease](
            lambda x: (
                fairness_bucket(x.pool, x.fairness_key) if x.phase is LeasePhase.HELD else None
            )
        )
        self.leases_held = SetIndex[Lease](lambda x: x.pool if x.phase is LeasePhase.HELD else None)
        self.leases_waiting = LineIndex[Lease](
            lambda x: (
                (x.pool, (-x.priority, x.requested_at_ms, x.lease_id))
                if x.phase is LeasePhase.WAITING
                else None
            )
        )
        self.commands_by_target = SetIndex[OutboxEntry](_command_bucket)
        """Buckets are `node:ID` for what an agent does and `provider:NAME` for the rest."""
        self.tokens_by_hash = SetIndex[Token](lambda t: t.sha256)
        self._by_kind: dict[str, tuple[SetIndex[Any] | LineIndex[Any], ...]] = {
            Node.KIND: (
                self.nodes_by_pool,
                self.nodes_by_tier,
                self.nodes_by_phase,
                self.nodes_by_pool_phase,
                self.nodes_by_machine,
                self.nodes_spare,
                self.nodes_idle,
                self.nodes_free,
                self.nodes_free_by_class,
            ),
            Allocation.KIND: (
                self.allocations_by_node,
                self.allocations_by_replica,
                self.allocations_by_bundle,
                self.allocations_by_phase,
                self.allocations_reserved,
            ),
            Replica.KIND: (
                self.replicas_by_bundle,
                self.replicas_by_phase,
                self.replicas_by_bundle_phase,
                self.replicas_pending,
            ),
            Lease.KIND: (
                self.leases_by_node,
                self.leases_by_key,
                self.leases_held,
                self.leases_waiting,
            ),
            OutboxEntry.KIND: (self.commands_by_target,),
            Token.KIND: (self.tokens_by_hash,),
        }

    def update(self, kind: str, key: str, old: Record | None, new: Record | None) -> None:
        """Let every index of the kind follow one write."""
        for index in self._by_kind.get(kind, ()):
            index.update(key, old, new)
