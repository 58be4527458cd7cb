"""What must hold of leases after every step; `invariants` runs it.

The numbers are those of spec/leasing.md section 4. Elsewhere: INV-01, INV-02 and INV-07
(`invariants`: INV-NODE-1, INV-LEASE-1), INV-03 and INV-04 (`node_invariants`: INV-POOL-1), INV-05
and INV-24 to INV-28 (the books), INV-30 (a second reply is a defect), INV-14 (a stop's id is its
node's, and is in the outbox once), INV-31 in part (INV-LEASE-7), INV-49 (INV-NODE-9). The simulator
looks at INV-16, INV-19 to INV-21, INV-35, INV-36 and INV-40 (bill, disk and outbox); INV-32 is in
`tests/core/leasing/test_properties.py`, INV-47 is trial T06. INV-22, INV-23, INV-41 to INV-46 and
INV-50 are about parts that Hostler does not have: sidecar files, tunnels, a reaper, and listeners.
INV-09, INV-37 to INV-39 are scenarios (SC-053, 6.7 and 6.8).
"""

from __future__ import annotations

from collections.abc import Iterator

from hostler.core.fleet import Fleet
from hostler.core.machine_commands import launch_command_id
from hostler.core.pool_invariants import Broken
from hostler.model import Lease, Node
from hostler.model.command import Command, LaunchMachine, StopMachine
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase, RetireReason

_OVER = (LeasePhase.SETTLED, LeasePhase.REFUSED)


def of_waiting(fleet: Fleet, lease: Lease) -> Iterator[Broken]:
    """INV-29: every request is answered by its deadline, whatever providers do."""
    if lease.wait_deadline_at_ms < fleet.now_ms:
        yield "INV-LEASE-8", "a lease waits beyond its deadline (INV-29)"


def of_held(node: Node) -> Iterator[Broken]:
    """INV-11, INV-12: nothing is leased before its agent has answered. INV-13: nor stopped then."""
    if node.phase in (NodePhase.REQUESTED, NodePhase.STARTING):
        yield "INV-LEASE-9", "a lease is held on a machine that has not answered yet (INV-11)"
    if node.phase is NodePhase.STOPPING:
        yield "INV-LEASE-10", "a machine is stopped while a lease is held on it (INV-13)"


def of_change(
    fleet: Fleet, before: Lease | None, lease: Lease, node_before: Node | None
) -> Iterator[Broken]:
    """Compare a lease with what it was before the step, and its node with what that was."""
    if before is not None and before.phase in _OVER and lease.phase is not before.phase:
        yield "INV-LEASE-11", "a lease that was over is not (INV-08, INV-33)"
    was_held = before is not None and before.phase is LeasePhase.HELD
    if lease.phase is LeasePhase.HELD and not was_held:
        yield from _of_grant(fleet, lease, node_before)


def _of_grant(fleet: Fleet, lease: Lease, node_before: Node | None) -> Iterator[Broken]:
    pool = fleet.pools.get(lease.pool)
    if pool is None or not pool.is_enabled:
        yield "INV-LEASE-12", "a lease is granted in a pool that takes no work (INV-34)"
        return
    cap = pool.lease_per_key_max
    held_count = fleet.index.leases_waiting.held_count(pool.name, lease.fairness_key)
    is_new_node = node_before is None or node_before.lease_count == 0
    if cap is not None and held_count > cap and is_new_node:
        yield "INV-LEASE-13", "a key is on more nodes than it may be (INV-06)"
    if node_before is None:
        return
    node = fleet.nodes.get(lease.node_id)
    if node_before.retire_reason is not None and not (node and _is_spared(node_before, node)):
        yield "INV-LEASE-14", "a lease is granted on a node that was to go (INV-10)"
    if lease.epoch <= node_before.lease_epoch:
        yield "INV-LEASE-15", "a lease's number is not above those before it (INV-48)"


def _is_spared(before: Node, node: Node) -> bool:
    """Say whether a node that was used up is not: in this step its last use turned out to be none.

    It may be used up again by the lease that is granted then.
    """
    tenant = node.last_tenant
    return (
        before.retire_reason is RetireReason.USED_UP
        and tenant is not None
        and tenant != before.last_tenant
        and tenant.outcome is LeaseOutcome.UNACKNOWLEDGED
    )


def of_machine_command(fleet: Fleet, command: Command) -> Iterator[Broken]:
    """INV-15: a machine is not ended while its launch is out. INV-18: nor at another provider.

    INV-20: what is launched has a record.
    """
    if not isinstance(command, LaunchMachine | StopMachine):
        return
    node = fleet.nodes.get(command.node_id)
    if node is None:
        yield "INV-OUTBOX-3", "a machine is launched or stopped that no record names (INV-20)"
        return
    if command.provider != node.provider:
        yield "INV-OUTBOX-4", "a machine is asked for at another provider than its own (INV-18)"
    if isinstance(command, StopMachine) and launch_command_id(node) in fleet.commands:
        yield "INV-OUTBOX-5", "a machine is ended while its launch is out (INV-15)"
