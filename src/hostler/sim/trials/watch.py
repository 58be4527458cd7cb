"""Checks that hold in every trial, numbered as in the list of complaints.

(1) the provider's bill is our ledger; (2) never two live leases on one slot; (3) booked and spent
never above a cap; (4) no machine with a live lease is ended by us but by its time, a cap or an
order; (5) the state rebuilt from what is on the disk is the live one; (6) every request ends
leased, in line with a reason, or refused with a code, by its deadline; (7) warm stock is never
above its target and the surge, and back at its target in time.

(2) is also an invariant of the core (INV-LEASE-1) and the truth's about what really runs; (1), the
other half of (7) and what else may not be left behind are looked at when a trial has ended
(`convergence`); (5) is the journal's replay then, and `Checkers.loaded` at every start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hostler.core.budgets import quantities, usage
from hostler.core.delta import Delta, Dispatch
from hostler.core.events import Event
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyInput
from hostler.core.sizing_targets import idle_floor
from hostler.core.spend_index import lease_scopes, scope_of
from hostler.core.uses import Use, use_key
from hostler.model import Budget, Lease, Node
from hostler.model.command import StopMachine
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import Health, NodePhase
from hostler.sim.checkers import Checkers
from hostler.sim.disk import Disk
from hostler.sim.promises import Promises
from hostler.sim.world import Violation, World

_ANSWER_SLACK_MS: Final = 1_000


class Watch(Checkers):
    """The checkers of every history, and those of trials.

    Attributes:
        events: Everything that was told, in order.
    """

    def __init__(self, world: World, disk: Disk, promises: Promises) -> None:
        super().__init__(world, disk, promises)
        self.events: list[Event] = []

    def stepped(self, fleet: Fleet, delta: Delta, inputs: Sequence[AnyInput]) -> None:
        """Check a step before it is committed."""
        super().stepped(fleet, delta, inputs)
        for name, record in delta.changes.items():
            before = delta.before[name]
            if isinstance(record, Lease):
                _check_lease(fleet, before if isinstance(before, Lease) else None, record)
                if record.phase is LeasePhase.HELD and before != record:
                    _check_caps(fleet, record)
            elif isinstance(record, Node) and before is None:
                _check_growth(fleet, record)

    def kept(self, fleet: Fleet, delta: Delta) -> None:
        """Check the fleet after a step was made final, and remember what it told."""
        super().kept(fleet, delta)
        self.events.extend(delta.events)
        for key in fleet.pools.rows:
            for lease_id in fleet.index.leases_waiting.keys(key):
                _check_wait(fleet, fleet.leases[lease_id])

    def dispatched(self, fleet: Fleet, dispatch: Dispatch) -> None:
        """Check a command as it leaves."""
        super().dispatched(fleet, dispatch)
        command = dispatch.command
        if isinstance(command, StopMachine):
            held = fleet.index.leases_by_node.keys(command.node_id)
            if held:
                raise Violation(
                    "busy_machine_ended",
                    "a machine is ended while a lease is held on it (4)",
                    node=command.node_id,
                    leases=" ".join(held),
                )


def _check_lease(fleet: Fleet, before: Lease | None, lease: Lease) -> None:
    """A lease ends by its holder, its time, an order, or with its machine (4), and says how (6)."""
    if lease.phase is LeasePhase.REFUSED and (lease.reason is None or not lease.reason_detail):
        raise Violation("refusal_mute", "a refusal does not say why (6)", lease=lease.lease_id)
    was_held = before is not None and before.phase is LeasePhase.HELD
    if not was_held or lease.phase is not LeasePhase.SETTLED:
        return
    node = fleet.nodes.get(lease.node_id)
    match lease.outcome:
        case LeaseOutcome.NODE_LOST:
            is_right = node is None or node.health is Health.LOST or node.is_machine_gone
        case LeaseOutcome.EXPIRED | LeaseOutcome.UNACKNOWLEDGED | LeaseOutcome.REVOKED:
            is_right = bool(lease.outcome_detail)
        case _:
            is_right = lease.outcome is not None
    if not is_right:
        raise Violation(
            "lease_ended_by_us",
            "a lease ends without its holder's word, its time or an order (4)",
            lease=lease.lease_id,
            outcome=str(lease.outcome),
        )


def _check_wait(fleet: Fleet, lease: Lease) -> None:
    """Who waits knows why, and not for longer than they wanted (6)."""
    if lease.reason is None:
        raise Violation("wait_mute", "who waits is not told why (6)", lease=lease.lease_id)
    if fleet.now_ms > lease.wait_deadline_at_ms + _ANSWER_SLACK_MS:
        raise Violation("wait_endless", "a wait outlasts its deadline (6)", lease=lease.lease_id)


def _check_caps(fleet: Fleet, lease: Lease) -> None:
    """What a grant may cost fits below every cap, together with all that is spent and kept (3)."""
    if lease.granted_at_ms != fleet.now_ms:
        return
    for budget in fleet.budgets.in_order():
        for cap in budget.caps:
            used = usage(fleet, budget, cap.period, fleet.now_ms)
            for each in quantities(cap, used):
                if each.used + each.reserved > each.limit and _is_about(fleet, lease, budget):
                    raise Violation(
                        "cap_passed",
                        "a grant goes beyond a cap (3)",
                        budget=budget.name,
                        of=each.name,
                        used=each.used,
                        reserved=each.reserved,
                        limit=each.limit,
                    )


def _is_about(fleet: Fleet, lease: Lease, budget: Budget) -> bool:
    """Say whether a budget counts a lease."""
    node = fleet.nodes.get(lease.node_id)
    tier = "" if node is None else node.tier
    return scope_of(budget) in lease_scopes(lease.pool, tier, lease.fairness_key)


def _check_growth(fleet: Fleet, node: Node) -> None:
    """What is asked for is wanted: by the line, the warm floor, spares, or a rollout (7)."""
    pool = fleet.pools.get(node.pool)
    if pool is None or node.phase is not NodePhase.REQUESTED or fleet.replicas.rows:
        return
    count = fleet.index.nodes_by_use.count
    coming = sum(count(use_key(pool.name, use)) for use in (Use.INCOMING, Use.INCOMING_SPARE))
    line = sum(wanted for _, wanted in fleet.index.leases_waiting.demand(pool.name))
    wanted = -(-line // pool.slot_count) + idle_floor(fleet, pool) + pool.spare_count
    if coming > wanted + pool.rollout.surge_count_max:
        raise Violation(
            "too_much_grown",
            "a machine is asked for that nobody wants (7)",
            pool=pool.name,
            coming=coming,
            wanted=wanted,
        )
