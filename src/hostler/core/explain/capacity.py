"""Why nodes, pools and leases are as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hostler.base.ids import LeaseId, NodeId
from hostler.base.units import format_instant
from hostler.core.consolidation import words
from hostler.core.explain.answer import Explanation, Why, counted, next_at_ms, notes, why
from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.sentences import SENTENCES
from hostler.core.waiting import why_waiting
from hostler.model import Lease, Node, Pool
from hostler.model.command import EndLease
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase
from hostler.model.reason import Reason

_LOG_LINES_TOLD: Final = 3
"""Of what a machine wrote that did not boot; `describe node` shows all that is kept."""


_NODES_TOLD: Final = 5


def explain_node(fleet: Fleet, node_id: NodeId) -> Explanation | None:
    """Explain a node."""
    node = fleet.nodes.get(node_id)
    if node is None:
        return None
    ids = [f"{node_id}/{verb}/{node.epoch}" for verb in ("launch", "check", "stop")]
    ids = [each for each in ids if each in fleet.commands]
    ids += fleet.index.commands_by_target.keys(f"node:{node_id}")
    return Explanation(
        about=node_id,
        kind="node",
        phase=node.phase.value,
        summary=_node_summary(node),
        reasons=(*_node_reasons(node), *_consolidation(fleet, node), *notes(fleet, node_id)),
        next_at_ms=next_at_ms(fleet, node),
        commands=tuple(ids),
    )


def _node_summary(node: Node) -> str:
    held = (
        f"{counted(node.allocation_count, 'allocation')} and {counted(node.lease_count, 'lease')}"
    )
    match node.phase:
        case NodePhase.REQUESTED:
            return f"Its machine ({node.offer}) is asked for at {node.provider}."
        case NodePhase.STARTING if node.readiness is not None:
            return "Its agent has come; its pool's ready check has not passed."
        case NodePhase.STARTING:
            return "Its machine exists; its agent has not said hello."
        case NodePhase.READY if node.takes_work:
            return f"It takes work and holds {held}."
        case NodePhase.READY:
            return f"It is {node.health.value}, takes nothing new and holds {held}."
        case NodePhase.DRAINING:
            return f"It is being emptied to retire ({_cause(node)}) and holds {held}."
        case NodePhase.STOPPING:
            return f"Its machine is being stopped ({_cause(node)})."
        case NodePhase.RETIRED:
            return f"Its machine is gone ({_cause(node)})."


def _cause(node: Node) -> str:
    return "for no reason given" if node.retire_reason is None else node.retire_reason.value


def _node_reasons(node: Node) -> Iterator[Why]:
    if node.cordon is not None:
        told = f"by {node.cordon.by}: {node.cordon.reason}".rstrip(": ")
        yield why("record", Reason.CORDONED, told, node.cordon.at_ms)
    if node.drain is not None:
        told = f"by {node.drain.by}"
        yield why("record", Reason.DRAINING, told, node.phase_since_at_ms)
    closed = node.maintenance
    if closed is not None and not closed.is_called_off:
        begin, end = format_instant(closed.from_at_ms), format_instant(closed.to_at_ms)
        told = f"{closed.name}, from {begin} to {end}"
        yield why("record", Reason.MAINTENANCE, told, node.phase_since_at_ms)
    if node.is_aging and node.ages_out_at_ms is not None:
        told = f"it ages out at {format_instant(node.ages_out_at_ms)}"
        yield why("record", Reason.REMAINING_LIFE, told, node.phase_since_at_ms)
    quarantine = node.quarantine
    if quarantine is not None and not quarantine.is_over:
        told = f"for {quarantine.cause.value}, {quarantine.count} in a row"
        reason = Reason.ON_PROBATION if quarantine.is_on_probation else Reason.QUARANTINED
        yield why("record", reason, told, quarantine.since_at_ms)
    if node.is_spare:
        told = f"for {node.spare_band or 'gold and silver'}"
        yield why("record", Reason.SPARE_RESERVED, told, node.idle_since_at_ms or 0)
    if node.launch_failure is not None:
        told = f"{node.launch_failure.code}: {node.launch_failure.message}"
        yield why("record", Reason.NODE_NOT_RUNNING, told, node.phase_since_at_ms)
    if node.boot_log:
        last = " / ".join(node.boot_log.splitlines()[-_LOG_LINES_TOLD:])
        told = f"its machine wrote last: {last}"
        yield why("record", Reason.NODE_NOT_RUNNING, told, node.phase_since_at_ms)


def _consolidation(fleet: Fleet, node: Node) -> Iterator[Why]:
    """Tell why the machine of a node that jobs use stays although it could be saved, or goes."""
    for obstacle, since_at_ms in words(fleet, node, fleet.now_ms):
        yield why("consolidating", obstacle.reason, obstacle.detail, since_at_ms)


def _too_short(fleet: Fleet, lease: Lease) -> Iterator[Why]:
    """Tell which nodes have a free slot, and not enough time left for a lease."""
    nodes = [fleet.nodes[key] for key in fleet.index.nodes_by_pool.keys(lease.pool)]
    closing = [
        node.node_id
        for node in nodes
        if node.is_closing and node.takes_work and node.lease_count < node.slot_count
    ]
    if closing:
        more = f" and {len(closing) - _NODES_TOLD} more" if len(closing) > _NODES_TOLD else ""
        told = f"free slots, but too little time left: {', '.join(closing[:_NODES_TOLD])}{more}"
        yield why("record", Reason.REMAINING_LIFE, told, lease.requested_at_ms)


def explain_lease(fleet: Fleet, lease_id: LeaseId) -> Explanation | None:
    """Explain a lease."""
    lease = fleet.leases.get(lease_id)
    if lease is None:
        return None
    reasons: Sequence[Why] = ()
    if lease.phase is LeasePhase.WAITING:
        now = why_waiting(fleet, lease)  # the record is as of when it was last looked at
        reasons = (
            why("record", now.reason, now.detail, lease.requested_at_ms),
            *_too_short(fleet, lease),
        )
    elif lease.reason is not None:
        reasons = (why("record", lease.reason, lease.reason_detail, lease.requested_at_ms),)
    return Explanation(
        about=lease_id,
        kind="lease",
        phase=lease.phase.value,
        summary=_lease_summary(fleet, lease),
        reasons=(*reasons, *notes(fleet, lease_id)),
        next_at_ms=next_at_ms(fleet, lease),
        commands=tuple(_lease_commands(fleet, lease)),
    )


def _lease_summary(fleet: Fleet, lease: Lease) -> str:
    match lease.phase:
        case LeasePhase.WAITING:
            return _place_in_line(fleet, lease)
        case LeasePhase.HELD:
            told = f"It holds a slot on {lease.node_id}, with epoch {lease.epoch}."
            if not lease.is_acknowledged:
                until = format_instant(lease.expires_at_ms or 0)
                return f"{told} It is taken back at {until} unless it is renewed."
            if lease.retiring_at_ms is not None:
                ends = format_instant(lease.retiring_at_ms)
                return f"{told} The node is to go, and it ends at {ends}."
            return told
        case LeasePhase.SETTLED:
            outcome = "" if lease.outcome is None else f" {lease.outcome.value}"
            told = f": {lease.outcome_detail}" if lease.outcome_detail else ""
            return f"It held a slot on {lease.node_id} and was settled{outcome}{told}."
        case LeasePhase.REFUSED:
            told = "" if lease.reason is None else f" {SENTENCES[lease.reason][0]}"
            return f"It was refused.{told}"


def _place_in_line(fleet: Fleet, lease: Lease) -> str:
    """Say who goes before a lease, and when it gives up."""
    line = fleet.index.leases_waiting.keys(lease.pool)
    ahead = [fleet.leases[key] for key in line[: line.index(lease.lease_id)]]
    key_count = len({each.fairness_key for each in ahead})
    before = (
        f"{counted(len(ahead), 'lease')} of {counted(key_count, 'key')} before it"
        if ahead
        else "nobody before it"
    )
    return (
        f"It waits in the line of pool {lease.pool}, {before} and {len(line) - len(ahead) - 1}"
        f" behind, until {format_instant(lease.wait_deadline_at_ms)}."
    )


def _lease_commands(fleet: Fleet, lease: Lease) -> Iterator[str]:
    for key in fleet.index.commands_by_target.keys(f"node:{lease.node_id}"):
        command = fleet.commands[key].command
        if isinstance(command, EndLease) and command.lease_id == lease.lease_id:
            yield key


def explain_pool(fleet: Fleet, name: str) -> Explanation | None:
    """Explain a pool: what it has and what it waits for."""
    pool = fleet.pools.get(name)
    if pool is None:
        return None
    return Explanation(
        about=name,
        kind="pool",
        phase="enabled" if pool.is_enabled else "disabled",
        summary=_pool_summary(fleet, pool),
        reasons=(*_stopped(fleet, pool), *notes(fleet, name)),
    )


def _stopped(fleet: Fleet, pool: Pool) -> Iterator[Why]:
    """Tell of tiers that launch no more, with what their last machine left behind."""
    for tier in pool.tiers:
        breaker = fleet.breakers.get(tier_key(pool.name, tier.name))
        if breaker is not None and breaker.stopped_at_ms is not None:
            last = breaker.failures[-1]
            told = (
                f"tier {tier.name}: {breaker.failure_count} in a row, the last of {last.node_id}:"
                f" {last.code}: {last.message}"
            )
            yield why("record", Reason.GROWTH_STOPPED, told, breaker.stopped_at_ms)


def _pool_summary(fleet: Fleet, pool: Pool) -> str:
    index = fleet.index
    counts = {
        phase: index.nodes_by_pool_phase.count(f"{pool.name}/{phase.value}") for phase in NodePhase
    }
    told = [counted(count, f"{phase.value} node") for phase, count in counts.items() if count]
    return f"It has {', '.join(told) if told else 'no nodes'}."
