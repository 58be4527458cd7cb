"""Convergence: once the world is healed, everything desired is so, and nothing else is.

Each problem is one sentence. An empty list is what every history must reach, and keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostler.agent.core.inputs import AllocationKey
from hostler.core.fleet import Fleet
from hostler.core.rollout import config_of
from hostler.model import Allocation, Bundle, Node, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.bundle import BundlePhase, Job
from hostler.model.command import ListMachines
from hostler.model.lease import LeasePhase
from hostler.model.node import Health, NodePhase
from hostler.model.pool import TierKind
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.sim.bill import books_problems

if TYPE_CHECKING:
    from hostler.sim.history import History


def problems(history: History, fleet: Fleet) -> list[str]:
    """Return what is not as it should be."""
    return [
        *_outbox(fleet),
        *_nodes(history, fleet),
        *_machines(history, fleet),
        *_replicas(history, fleet),
        *_processes(history, fleet),
        *_leases(history, fleet),
        *_targets(fleet),
        *_maintenances(fleet),
        *_bundles(fleet),
        *_rollouts(fleet),
        *books_problems(
            history.cloud,
            fleet,
            history.checkers.named,
            history.checkers.nameless.values(),
            history.world.now_ms,
            history.server.clock_jumped_ms,
        ),
    ]


def _outbox(fleet: Fleet) -> Iterator[str]:
    for entry in fleet.commands.in_order():
        if not isinstance(entry.command, ListMachines):
            yield f"command {entry.command_id} is not settled ({entry.last_code})"


def _nodes(history: History, fleet: Fleet) -> Iterator[str]:
    for node in fleet.nodes.in_order():
        if node.phase is NodePhase.RETIRED:
            continue
        if node.phase is not NodePhase.READY:
            yield f"node {node.node_id} is {node.phase.value} ({node.retire_reason})"
        elif node.health is not Health.LIVE:
            yield f"node {node.node_id} is {node.health.value}"
        elif node.retire_reason is not None:
            yield f"node {node.node_id} is to retire ({node.retire_reason.value}) and stays"
        machine = history.hardware.machines.get(str(node.machine_id))
        if node.phase is NodePhase.READY and (machine is None or not machine.is_on):
            yield f"node {node.node_id} is ready and its machine {node.machine_id} is not on"


def _machines(history: History, fleet: Fleet) -> Iterator[str]:
    for machine in history.cloud.existing():
        node = fleet.nodes.get(machine.node_id)
        if node is None or node.phase is NodePhase.RETIRED:
            yield f"machine {machine.machine_id} is billed and node {machine.node_id} is not"
        elif node.machine_id != machine.machine_id:
            yield f"machine {machine.machine_id} is billed beside node {machine.node_id}'s own"
    for own in history.hardware.own():
        if own.disk.node_id is None:
            yield f"machine {own.machine_id} has not joined"


def _replicas(history: History, fleet: Fleet) -> Iterator[str]:
    for replica in fleet.replicas.in_order():
        allocation = _allocation_of(fleet, replica)
        match replica.phase:
            case ReplicaPhase.PLACED:
                if allocation is None:
                    yield f"replica {replica.replica_id} is placed nowhere"
                elif allocation.phase is not AllocationPhase.READY:
                    told = f"{allocation.allocation_id} is {allocation.phase.value}"
                    yield f"replica {replica.replica_id}: {told}"
                else:
                    yield from _config(fleet, allocation)
                    yield from _role(history, fleet, allocation)
            case ReplicaPhase.PENDING:
                if replica.reason is None:
                    yield f"replica {replica.replica_id} is pending and does not say why"
                room = _room(fleet, replica)
                if room is not None:
                    why = replica.reason.value if replica.reason else "no reason"
                    yield f"replica {replica.replica_id} is pending ({why}) though {room}"
            case ReplicaPhase.BROKEN | ReplicaPhase.DROPPED | ReplicaPhase.DORMANT:
                pass
            case _:
                yield f"replica {replica.replica_id} is {replica.phase.value}"


def _config(fleet: Fleet, allocation: Allocation) -> Iterator[str]:
    config = config_of(fleet, allocation)
    if config is not None and allocation.config_applied != config.generation:
        told = f"works by configuration {allocation.config_applied}, not {config.generation}"
        yield f"allocation {allocation.allocation_id} {told}"


def _role(history: History, fleet: Fleet, allocation: Allocation) -> Iterator[str]:
    node = fleet.nodes.get(allocation.node_id)
    machine = history.hardware.machines.get(str(node and node.machine_id))
    key = AllocationKey(allocation.allocation_id, allocation.epoch)
    folder = None if machine is None else machine.disk.folder_by_key.get(key)
    if folder is not None and folder.role != allocation.role:
        told = f"takes itself for {folder.role}, not {allocation.role}"
        yield f"allocation {allocation.allocation_id} {told}"


def _rollouts(fleet: Fleet) -> Iterator[str]:
    for rollout in fleet.rollouts.in_order():
        is_held = rollout.is_paused or "budget " in rollout.waits_for
        if rollout.is_under_way and not is_held:
            yield f"rollout of {rollout.bundle_id} is {rollout.phase.value}: {rollout.waits_for}"


def _allocation_of(fleet: Fleet, replica: Replica) -> Allocation | None:
    keys = fleet.index.allocations_by_replica.keys(replica.replica_id)
    return fleet.allocations[keys[0]] if keys else None


def _room(fleet: Fleet, replica: Replica) -> str | None:
    """Say where a pending replica would fit without any doubt, if anywhere."""
    bundle = fleet.bundles[replica.bundle_id]
    job = bundle.job(replica.job)
    pool = fleet.pools.get(bundle.pool)
    if job is None or pool is None or not pool.is_enabled or not _is_plain(bundle, job, replica):
        return None
    node_id = _node_with_room(fleet, bundle, job)
    if node_id is not None:
        return f"{node_id} has room"
    for tier in pool.tiers:
        count = fleet.index.nodes_by_tier.count(f"{pool.name}/{tier.name}")
        is_fit = any(
            (offer.shape.capacity or 0) >= job.requirement.capacity for offer in tier.offers
        )
        is_fit &= tier.has_agents
        if tier.kind is TierKind.ELASTIC and count < tier.node_count_max and is_fit:
            return f"tier {tier.name} may grow"
    return None


def _is_plain(bundle: Bundle, job: Job, replica: Replica) -> bool:
    """Say whether nothing but capacity and the rule about siblings decides about a place."""
    return (
        replica.reason is not Reason.BUNDLE_BROKEN
        and bundle.service is None
        and bundle.is_primary_interruptible
        and not any(rule.is_required for rule in bundle.spread)
        and not bundle.is_gang
        and not bundle.is_colocated
        and bundle.backup_apart is None
        and not job.node_rules
        and not job.affinities
        and not job.requirement.capabilities
    )


def _node_with_room(fleet: Fleet, bundle: Bundle, job: Job) -> str | None:
    siblings = {
        allocation.node_id
        for key in fleet.index.allocations_by_bundle.keys(bundle.bundle_id)
        if (allocation := fleet.allocations[key]).job == job.name
    }
    for key in fleet.index.nodes_by_pool.keys(bundle.pool):
        node = fleet.nodes[key]
        is_open = node.takes_work and not node.is_spare and node.retire_reason is None
        is_open &= node.has_agent
        is_free = node.lease_count == 0 and node.node_id not in siblings
        if is_open and is_free and _free(fleet, node) >= job.requirement.capacity:
            return node.node_id
    return None


def _free(fleet: Fleet, node: Node) -> int:
    held = sum(
        fleet.allocations[key].requirement.capacity
        for key in fleet.index.allocations_by_node.keys(node.node_id)
    )
    return (node.shape.capacity or 0) - held


def _processes(history: History, fleet: Fleet) -> Iterator[str]:
    jobs = history.truth.jobs_by_replica
    copies = [(key, process) for key in sorted(jobs) for process in jobs[key].values()]
    for replica_id, process in copies:
        allocation = fleet.allocations.get(process.allocation_id)
        if allocation is None or not allocation.is_live:
            yield f"{replica_id} runs as {process.allocation_id}, which is not live"
        elif allocation.epoch != process.epoch:
            yield f"{replica_id} runs with epoch {process.epoch}, not {allocation.epoch}"
    for allocation in fleet.allocations.in_order():
        if allocation.phase is AllocationPhase.READY and allocation.replica_id not in jobs:
            yield f"allocation {allocation.allocation_id} is ready and does not run"


def _leases(history: History, fleet: Fleet) -> Iterator[str]:
    for lease in fleet.leases.in_order():
        if lease.phase in (LeasePhase.WAITING, LeasePhase.HELD):
            yield f"lease {lease.lease_id} is {lease.phase.value}"
    for process in history.truth.leased():
        yield f"{process.request_id} runs under {process.lease_id} on {process.machine_id}"


def _targets(fleet: Fleet) -> Iterator[str]:
    """Warm floors and spares are there, or cannot be."""
    for pool in fleet.pools.in_order():
        if not pool.is_enabled:
            continue
        nodes = [fleet.nodes[key] for key in fleet.index.nodes_by_pool.keys(pool.name)]
        idle = [node for node in nodes if node.takes_work and not node.is_held]
        spare_count = sum(1 for node in idle if node.is_spare)
        warm_count = len(idle) - spare_count
        is_short = warm_count < pool.warm_count and _may_grow(fleet, pool.name)
        is_short |= spare_count < pool.spare_count and _may_grow(fleet, pool.name, for_jobs=True)
        if is_short:
            yield (
                f"pool {pool.name} has {warm_count} of {pool.warm_count} warm"
                f" and {spare_count} of {pool.spare_count} spare nodes"
            )
        for node in idle:
            is_elastic = node.provider != "" and not node.is_spare
            if is_elastic and warm_count > pool.warm_count and _is_old(fleet, node, pool.idle_ms):
                yield f"node {node.node_id} stands idle beyond its time"


def _may_grow(fleet: Fleet, pool_name: str, *, for_jobs: bool = False) -> bool:
    pool = fleet.pools[pool_name]
    return any(
        tier.kind is TierKind.ELASTIC
        and (tier.has_agents or not for_jobs)
        and fleet.index.nodes_by_tier.count(f"{pool_name}/{tier.name}") < tier.node_count_max
        for tier in pool.tiers
    )


def _maintenances(fleet: Fleet) -> Iterator[str]:
    for each in fleet.maintenances.in_order():
        if each.added is not None and (each.plan.timetable.to_at_ms or 0) < fleet.now_ms:
            yield f"maintenance {each.name} is over and not forgotten"


def _is_old(fleet: Fleet, node: Node, idle_ms: int) -> bool:
    since_ms = node.idle_since_at_ms
    return since_ms is not None and fleet.now_ms > since_ms + idle_ms + 60_000


def _bundles(fleet: Fleet) -> Iterator[str]:
    for bundle in fleet.bundles.in_order():
        if bundle.phase is not BundlePhase.ACTIVE:
            yield f"bundle {bundle.bundle_id} is {bundle.phase.value}"
            continue
        for job in bundle.jobs if bundle.service is None else ():
            for index in range(bundle.replica_count):
                if f"{bundle.bundle_id}/{job.name}/{index}" not in fleet.replicas:
                    yield f"bundle {bundle.bundle_id} lacks replica {job.name}/{index}"
