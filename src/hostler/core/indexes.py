"""The indexes of the fleet: each question that a controller asks often, answered without a scan."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from hostler.core.audit import AuditIndex
from hostler.core.debt_index import DebtIndex
from hostler.core.keys import bundle_phase_key, tier_key
from hostler.core.lease_index import LeaseIndex
from hostler.core.peer_index import PeerIndex
from hostler.core.pending_index import PendingIndex
from hostler.core.placement.places import PlaceIndex
from hostler.core.slot_index import SlotIndex
from hostler.core.spend_index import SpendIndex
from hostler.core.tables import SetIndex
from hostler.core.uses import ReplaceIndex, UseIndex, offer_key
from hostler.model import (
    Allocation,
    AuditEntry,
    Budget,
    Bundle,
    Lease,
    Meter,
    Node,
    OutboxEntry,
    Pool,
    Replica,
    Settings,
    SpendRow,
    Token,
)
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.command import CheckMachine, LaunchMachine, ListMachines, StopMachine
from hostler.model.node import Health, NodePhase
from hostler.model.record import Record


def _leaving_bucket(node: Node) -> str | None:
    is_leaving = node.retire_reason is not None and node.phase is not NodePhase.RETIRED
    return tier_key(node.pool, node.tier) if is_leaving else None


def _staying_bucket(node: Node) -> str | None:
    is_staying = (
        node.retire_reason is None
        and node.phase is not NodePhase.RETIRED
        and node.health is Health.LIVE
        and node.cordon is None
        and node.drain is None
        and not node.is_closing
    )
    return node.pool if is_staying else None


_MAY_BE_DRAINED: Final = (NodePhase.REQUESTED, NodePhase.STARTING, NodePhase.READY)


def _draining_bucket(node: Node) -> str | None:
    is_asked = node.drain is not None and not node.drain.is_done
    is_draining = node.phase is NodePhase.DRAINING or (is_asked and node.phase in _MAY_BE_DRAINED)
    return "all" if is_draining else None


def _stuck_bucket(node: Node) -> str | None:
    if node.phase is not NodePhase.STOPPING:
        return None
    if node.is_foreign:
        return "foreign"
    return "stuck" if node.is_stuck else None


def _lost_bucket(node: Node) -> str | None:
    is_lost = node.health is Health.LOST and node.silent_since_at_ms is not None
    return "all" if is_lost else None


def _claimed_node(replica: Replica) -> str | None:
    claim = replica.kept_room
    return None if claim is None else claim.node_id


def _command_bucket(entry: OutboxEntry) -> str:
    command = entry.command
    if isinstance(command, _FOR_PROVIDERS):
        return f"provider:{command.provider}"
    return f"node:{command.node_id}"


_FOR_PROVIDERS: Final = (LaunchMachine, StopMachine, CheckMachine, ListMachines)


class NodeIndexes:
    """Questions about nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes_by_pool = SetIndex[Node](
            lambda n: None if n.phase is NodePhase.RETIRED else n.pool
        )
        self.nodes_by_tier = SetIndex[Node](
            lambda n: None if n.phase is NodePhase.RETIRED else tier_key(n.pool, n.tier)
        )
        self.nodes_by_offer = SetIndex[Node](
            lambda n: (
                None
                if n.phase is NodePhase.RETIRED or not n.offer
                else offer_key(n.pool, n.tier, n.offer)
            )
        )
        self.nodes_by_phase = SetIndex[Node](lambda n: n.phase.value)
        self.nodes_by_pool_phase = SetIndex[Node](lambda n: f"{n.pool}/{n.phase.value}")
        self.nodes_by_machine = SetIndex[Node](
            lambda n: f"{n.provider}/{n.machine_id}" if n.machine_id else None
        )
        self.nodes_by_provider = SetIndex[Node](lambda n: n.provider if n.is_paid else None)
        self.nodes_spare = SetIndex[Node](
            lambda n: n.pool if n.is_spare and n.phase is not NodePhase.RETIRED else None
        )
        self.nodes_leaving = SetIndex[Node](_leaving_bucket)
        """By tier: on their way out, and counted until they are gone."""
        self.nodes_staying = SetIndex[Node](_staying_bucket)
        """By pool: what may be used, now or when it is there."""
        self.nodes_to_replace = ReplaceIndex()
        """Those in whose place another is to come."""
        self.nodes_launching = SetIndex[Node](
            lambda n: n.provider if n.phase is NodePhase.REQUESTED else None
        )
        """By provider: asked for, and no machine is known yet."""
        self.nodes_draining = SetIndex[Node](_draining_bucket)
        """In `all`: those that are to be empty and have not been seen so."""
        self.nodes_stuck = SetIndex[Node](_stuck_bucket)
        """In `stuck` those whose machines do not die, in `foreign` those held back."""
        self.nodes_lost = SetIndex[Node](_lost_bucket)
        """In `all`: those given up for silence; the brake counts them."""
        self.nodes_maintained = SetIndex[Node](lambda n: None if n.maintenance is None else "all")
        """In `all`: those whose machine is about to be worked on, or is."""
        self.nodes_quarantined = SetIndex[Node](
            lambda n: n.pool if n.quarantine is not None and not n.quarantine.is_over else None
        )
        """By pool: those that are left alone, or on probation."""
        uses = UseIndex()
        self.nodes_by_use = uses.by_use
        self.nodes_spare_for = uses.spares_by_band
        self.nodes_incoming = uses.incoming
        self.nodes_idle_by_offer = uses.idle_by_offer
        self.nodes_warm_launched = uses.warm_launched
        self.nodes_free = SlotIndex()
        """Nodes with a free slot for a lease."""
        self.places = PlaceIndex()
        """Nodes as placing sees them."""
        self._follow_nodes(uses)

    def _follow_nodes(self, uses: UseIndex) -> None:
        """Say which indexes follow which writes of nodes."""
        self._node_follows = (
            self.places.follow_node,
            *_follows(
                self.nodes_by_pool,
                self.nodes_by_tier,
                self.nodes_by_offer,
                self.nodes_by_phase,
                self.nodes_by_pool_phase,
                self.nodes_by_machine,
                self.nodes_by_provider,
                self.nodes_spare,
                self.nodes_leaving,
                self.nodes_staying,
                self.nodes_launching,
                self.nodes_draining,
                self.nodes_lost,
                self.nodes_maintained,
                self.nodes_quarantined,
                self.nodes_stuck,
                uses,
                self.nodes_free,
                self.nodes_to_replace,
            ),
        )
        self._node_follows_moving = (
            self.places.follow_node,
            *_follows(uses, self.nodes_free, self.nodes_to_replace),
        )


class AllocationIndexes:
    """Questions about the places that replicas have."""

    def __init__(self) -> None:
        super().__init__()
        self.allocations_by_node = SetIndex[Allocation](lambda a: a.node_id if a.is_live else None)
        self.allocations_by_replica = SetIndex[Allocation](
            lambda a: a.replica_id if a.is_live else None
        )
        self.allocations_by_bundle = SetIndex[Allocation](
            lambda a: a.bundle_id if a.is_live else None
        )
        self.allocations_by_band = SetIndex[Allocation](
            lambda a: a.band.value if a.is_live else None
        )
        self.allocations_by_phase = SetIndex[Allocation](
            lambda a: None if a.phase is AllocationPhase.ENDED else a.phase.value
        )
        self.allocations_reserved = SetIndex[Allocation](
            lambda a: a.node_id if a.phase is AllocationPhase.RESERVED else None
        )
        """By node: what starts when the node is ready."""
        self.allocations_of_services = SetIndex[Allocation](
            lambda a: a.node_id if a.is_service and a.is_live else None
        )
        """By node: copies of node services, which are no hold on the node."""
        self.allocations_rejected = SetIndex[Allocation](
            lambda a: (
                a.node_id if a.ended is not None and a.ended.cause is EndCause.REJECTED else None
            )
        )
        """By node: those that its agent refused, as long as they are remembered."""
        self.allocations_unready = SetIndex[Allocation](
            lambda a: a.bundle_id if a.is_live and a.phase is not AllocationPhase.READY else None
        )
        """By bundle: those that have a place and do not serve."""
        self._allocation_follows_moving = _follows(
            self.allocations_by_phase,
            self.allocations_reserved,
            self.allocations_unready,
            self.allocations_rejected,
        )
        self._allocation_follows = (
            *_follows(
                self.allocations_by_node,
                self.allocations_by_replica,
                self.allocations_by_bundle,
                self.allocations_by_band,
                self.allocations_of_services,
            ),
            *self._allocation_follows_moving,
        )


class ReplicaIndexes:
    """Questions about replicas and what wants a place."""

    def __init__(self) -> None:
        super().__init__()
        self.bundles_of_services = SetIndex[Bundle](lambda b: None if b.service is None else "all")
        """In `all`: the bundles behind node services."""
        self.replicas_by_bundle = SetIndex[Replica](lambda r: r.bundle_id)
        self.replicas_by_phase = SetIndex[Replica](lambda r: r.phase.value)
        self.replicas_claiming = SetIndex[Replica](_claimed_node)
        """By node: those for whom room is being made there."""
        self.replicas_preempted = SetIndex[Replica](
            lambda r: None if r.preempted is None else "all"
        )
        """In `all`: those that lately gave way."""
        self.replicas_pending = PendingIndex()
        """Who wants a place now, or a second one, by demand, the most urgent first."""
        self.replicas_placeable = SetIndex[Replica](
            lambda r: r.bundle_id if r.is_placeable else None
        )
        """The same by bundle."""
        self.replicas_migrating = SetIndex[Replica](
            lambda r: None if r.migration is None else r.bundle_id
        )
        """By bundle: those that are being moved to a second place."""
        self.replicas_by_bundle_phase = SetIndex[Replica](
            lambda r: bundle_phase_key(r.bundle_id, r.phase)
        )
        self.replicas_in_debt = DebtIndex()
        """In `all`: those whose place breaks a rule, who is looked at last first."""
        self._replica_follows = _follows(
            self.replicas_by_bundle,
            self.replicas_by_phase,
            self.replicas_by_bundle_phase,
            self.replicas_claiming,
            self.replicas_preempted,
            self.replicas_pending,
            self.replicas_in_debt,
            self.replicas_placeable,
            self.replicas_migrating,
        )


class Indexes(NodeIndexes, AllocationIndexes, ReplicaIndexes):
    """All indexes, fed by every write."""

    def __init__(self) -> None:
        super().__init__()
        leases = LeaseIndex(self.nodes_free)
        self.leases_by_node = leases.by_node
        self.leases_held = leases.held
        self.leases_over = leases.over
        self.leases_waiting = leases.waiting
        self.peers = PeerIndex()
        """Bundles by their labels, and by the wishes of others about them."""
        self.commands_by_target = SetIndex[OutboxEntry](_command_bucket)
        """Buckets are `node:ID` for what an agent does and `provider:NAME` for the rest."""
        self.tokens_by_hash = SetIndex[Token](lambda t: t.sha256)
        self.audit = AuditIndex()
        """Entries of the audit by outcome, the oldest first."""
        self.spend = spend = SpendIndex()
        """What is used, runs, and is held, by what budgets are about."""
        self._by_kind: dict[str, tuple[_Follow, ...]] = {
            AuditEntry.KIND: (self.audit.update,),
            Budget.KIND: (spend.update_budget, leases.waiting.update_budget),
            Meter.KIND: (spend.update_meter,),
            Node.KIND: (*self._node_follows, spend.update_node),
            Allocation.KIND: (self.places.follow_allocation, *self._allocation_follows),
            Replica.KIND: (self.places.follow_replica, *self._replica_follows),
            Settings.KIND: (self.replicas_pending.update_settings,),
            Bundle.KIND: _follows(self.peers, self.bundles_of_services),
            Lease.KIND: (leases.update, spend.update_lease),
            OutboxEntry.KIND: _follows(self.commands_by_target),
            Pool.KIND: (
                leases.update_pool,
                self.nodes_free.update_pool,
                self.places.follow_pool,
                spend.update_pool,
            ),
            SpendRow.KIND: (spend.update_row,),
            Token.KIND: _follows(self.tokens_by_hash),
        }
        self._by_kind_moving: dict[str, tuple[_Follow, ...]] = {
            Allocation.KIND: (self.places.follow_allocation, *self._allocation_follows_moving),
            Node.KIND: self._node_follows_moving,
            OutboxEntry.KIND: (),
        }

    def update(
        self,
        kind: str,
        key: str,
        old: Record | None,
        new: Record | None,
        *,
        is_steady: bool = False,
    ) -> None:
        """Let every index of the kind follow one write.

        `is_steady` says that old and new are known to be alike in what is steady.
        """
        follows = self._by_kind.get(kind, ())
        if is_steady:
            follows = self._by_kind_moving[kind]
        elif old is not None and new is not None:
            steady = _STEADY_PARTS.get(kind)
            if steady is not None and steady(old) == steady(new):
                follows = self._by_kind_moving[kind]
        for follow in follows:
            follow(key, old, new)


_Follow = Callable[[str, Any, Any], None]


def _follows(
    *indexes: SetIndex[Any]
    | DebtIndex
    | PendingIndex
    | SlotIndex
    | UseIndex
    | ReplaceIndex
    | LeaseIndex
    | PeerIndex,
) -> tuple[_Follow, ...]:
    return tuple(index.update for index in indexes)


_STEADY: Final = {
    Allocation.KIND: ("is_live", "node_id", "replica_id", "bundle_id", "band"),
    Node.KIND: (
        "phase",
        "is_spare",
        "machine_id",
        "pool",
        "tier",
        "provider",
        "retire_reason",
        "cordon",
        "drain",
        "quarantine",
        "maintenance",
        "is_aging",
        "health",
        "silent_since_at_ms",
        "is_stuck",
        "is_foreign",
    ),
    OutboxEntry.KIND: ("command",),
}
"""Fields of a kind that seldom change, and on which most of its indexes depend: while they stay,
only the indexes that depend on other fields are asked. A new index of one of these kinds goes into
`_by_kind_moving` (`_node_follows_moving`, `_allocation_follows_moving`) too, unless it looks at
nothing else."""

_STEADY_PARTS: Final = {kind: attrgetter(*names) for kind, names in _STEADY.items()}

STEADY_NODE_FIELDS: Final = frozenset(_STEADY[Node.KIND])
"""Who changes none of these of a node can say so to `Indexes.update`."""
