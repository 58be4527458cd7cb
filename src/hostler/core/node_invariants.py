"""What must hold of nodes and their machines after every step; `invariants` runs it."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.core import limits, pool_invariants, silence
from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.machine_commands import launch_command_id, stop_command_id
from hostler.core.pool_invariants import Broken
from hostler.model import Node
from hostler.model.allocation import AllocationPhase
from hostler.model.command import EndLease
from hostler.model.launch import Disconnect
from hostler.model.lease import Share
from hostler.model.node import Health, NodePhase, NoticeKind, Origin


def of_machine(fleet: Fleet, node: Node) -> Iterator[Broken]:
    """A machine that may exist is known, asked about, and on its way out when it shall go."""
    is_ours_to_stop = node.provider != "" and node.origin is not Origin.JOINED
    if (
        node.phase is NodePhase.STOPPING
        and is_ours_to_stop
        and not node.is_foreign
        and stop_command_id(node) not in fleet.commands
        and launch_command_id(node) not in fleet.commands
    ):
        yield "INV-NODE-5", "a machine that is to go is not being stopped"
    if node.is_foreign and (
        node.phase is not NodePhase.RETIRED and stop_command_id(node) in fleet.commands
    ):
        yield "INV-NODE-8", "a machine that may be somebody else's is being stopped"
    if node.cleaning_count and node.phase is not NodePhase.RETIRED:
        keys = fleet.index.commands_by_target.keys(f"node:{node.node_id}")
        commands = [fleet.commands[key].command for key in keys]
        if node.cleaning_count != sum(
            isinstance(command, EndLease) and bool(command.clean_up) for command in commands
        ):
            yield "INV-NODE-7", "slots are being cleaned up and no agent was asked to"
    if node.readiness is not None and node.phase in (NodePhase.READY, NodePhase.DRAINING):
        yield "INV-NODE-10", "a node has work, or may have, before its ready check has passed"
    if node.phase is NodePhase.REQUESTED:
        yield from _of_launch(fleet, node)
    if node.is_paid and node.provider not in fleet.providers:
        yield "INV-PROVIDER-1", "a provider that may have a machine of ours is not listed"
    is_ending = node.notice is not None and node.notice.kind is NoticeKind.TERMINATE
    if is_ending and node.takes_work:
        yield "INV-NOTICE-1", "a node whose machine is about to end takes new work"
    yield from _of_quarantine(fleet, node)
    yield from _of_maintenance(fleet, node)
    if node.drain is not None and node.drain.is_done and node.is_held:
        yield "INV-DRAIN-1", "a node whose drain is finished holds something"


def _of_launch(fleet: Fleet, node: Node) -> Iterator[Broken]:
    """A launch is in the outbox, and is waited for no longer than its machine may take to boot."""
    entry = fleet.commands.get(launch_command_id(node))
    if entry is None:
        yield "INV-NODE-6", "a node that is asked for has no launch in the outbox"
        return
    until_at_ms = entry.created_at_ms + node.boot_ms
    if entry.next_at_ms > max(until_at_ms, fleet.now_ms + limits.LAUNCH_PATIENCE_MS_MIN):
        yield "INV-NODE-6", "a launch may stay unanswered beyond its machine's time to boot"


def of_sharing(fleet: Fleet, node: Node) -> Iterator[Broken]:
    """Whoever shares a node consents, and the node knows with whom it may be shared."""
    if node.slot_count == 1 or not node.lease_count:
        return
    leases = [fleet.leases[key] for key in fleet.index.leases_by_node.keys(node.node_id)]
    strictest = min((each.share for each in leases), key=lambda share: share.rank)
    keys = {each.fairness_key for each in leases}
    if len(leases) > 1 and (
        strictest is Share.NONE or (strictest is Share.SAME_KEY and len(keys) > 1)
    ):
        yield "INV-LEASE-8", "two leases share a node, and one of them does not consent"
    if node.share.rank > strictest.rank or (
        node.tenant_key is not None and {node.tenant_key} != keys
    ):
        yield "INV-LEASE-8", "a node may be shared with whom its leases do not consent to"


def _of_maintenance(fleet: Fleet, node: Node) -> Iterator[Broken]:
    maintained = node.maintenance
    if maintained is None or node.phase is NodePhase.RETIRED:
        return
    if maintained.is_begun and not maintained.is_called_off and node.takes_work:
        yield "INV-MAINTENANCE-1", "a node whose machine is worked on takes new work"
    if maintained.name not in fleet.maintenances:
        yield "INV-MAINTENANCE-2", "a node is closed for a maintenance that is no more"


def _of_quarantine(fleet: Fleet, node: Node) -> Iterator[Broken]:
    quarantine = node.quarantine
    if quarantine is None or quarantine.is_over or quarantine.trial_id is None:
        return
    trial = fleet.allocations.get(quarantine.trial_id)
    if not quarantine.is_on_probation or trial is None or not trial.is_live:
        yield "INV-QUARANTINE-1", "a node is tried with what is not there"


def of_lost(fleet: Fleet, node: Node) -> Iterator[Broken]:
    """A lost node holds nothing but what keeps running when it is cut off."""
    if node.health is not Health.LOST:
        return
    if node.lease_count:
        yield "INV-FENCE-2", "a lease is held on a lost node"
    for key in fleet.index.allocations_by_node.keys(node.node_id):
        allocation = fleet.allocations[key]
        is_kept = allocation.launch.disconnect is Disconnect.KEEP
        if node.is_machine_gone or not is_kept or allocation.phase is AllocationPhase.RESERVED:
            yield "INV-FENCE-3", "a lost node holds what should have been ended"


def _is_minted(fleet: Fleet, node: Node) -> bool:
    counter = fleet.counters.get("n")
    number = node.node_id.rpartition("-")[2]
    return counter is not None and number.isdigit() and int(number) <= counter.value


def of_change(fleet: Fleet, before: Node | None, node: Node) -> Iterator[Broken]:
    """Compare a node with what it was before the step."""
    settings = fleet.settings
    if before is None:
        if not _is_minted(fleet, node):
            yield "INV-NODE-9", "a node has an id that was not given out, or twice (INV-49)"
        pool = fleet.pools.get(node.pool)
        tier = None if pool is None else pool.tier(node.tier)
        if node.phase is NodePhase.REQUESTED and (
            tier is None
            or fleet.index.nodes_by_tier.count(tier_key(node.pool, node.tier)) > tier.node_count_max
        ):
            yield "INV-POOL-1", "a tier has grown above its maximum"
        yield from pool_invariants.of_new_node(fleet, node)
        return
    yield from pool_invariants.of_retirement(before, node)
    if node.lease_epoch < before.lease_epoch or node.epoch < before.epoch:
        yield "INV-NODE-8", "a node's numbers of authority have fallen (INV-48)"
    if (
        settings is not None
        and node.health is Health.LOST
        and before.health is not Health.LOST
        and node.silent_since_at_ms is not None
        and node.health_since_at_ms - node.silent_since_at_ms
        < silence.lost_after_ms(settings, before)
    ):
        yield "INV-FENCE-1", "a node was lost before its agent had certainly stopped its work"
