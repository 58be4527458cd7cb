"""A request for a lease: put into line, answered again, or refused. Who is served is leasing's."""

from __future__ import annotations

from msgspec.structs import replace

from hostler.base.encoding import digest, encode
from hostler.base.ids import LeaseId, NodeId
from hostler.core import limits
from hostler.core.inputs import AcquireLease
from hostler.core.replies import Refused
from hostler.core.slots import could_ever_fit, may_serve_again
from hostler.core.txn import Txn
from hostler.model import Lease, Pool, Receipt
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.reason import Reason
from hostler.model.selector import selector_text
from hostler.model.shape import NOTHING_REQUIRED, Requirement


def acquire(txn: Txn, one: AcquireLease) -> None:
    """Put a request into line, unless it can be seen that standing there would be no use."""
    request_digest = _digest(one) if one.idempotency_key else ""
    if one.idempotency_key:
        receipt = txn.fleet.receipts.get(_receipt_id(one))
        if receipt is not None and receipt.expires_at_ms > txn.now_ms:
            again = _repeat(txn, one, receipt)
            if again is None:
                return
            one = again
    pool = txn.fleet.pools.get(one.pool)
    refusal = _refusal(txn, one, pool)
    if refusal is not None or pool is None:
        txn.reply(one.request_id, refusal or _no_pool(one))
        return
    lease_id = LeaseId(txn.mint("l"))
    node_id = one.affinity_node_id or _former_node(txn, one)
    needs_nothing = one.requirement == NOTHING_REQUIRED
    txn.put(
        Lease(
            lease_id=lease_id,
            pool=pool.name,
            holder=one.principal,
            fairness_key=one.fairness_key or one.principal,
            # The one value for all, by which the line knows at a glance who fits every slot.
            requirement=NOTHING_REQUIRED if needs_nothing else one.requirement,
            labels=one.labels,
            priority=one.priority,
            affinity_node_id=node_id,
            affinity_wait_ms=one.affinity_wait_ms,
            is_affinity_required=one.is_affinity_required,
            is_pinned=_is_pinned(txn, one, node_id),
            excluded_node_ids=one.excluded_node_ids,
            share=one.share,
            ack_ms=one.ack_ms,
            phase=LeasePhase.WAITING,
            phase_since_at_ms=txn.now_ms,
            requested_at_ms=txn.now_ms,
            wait_deadline_at_ms=txn.now_ms + one.timeout_ms,
            line_at_ms=txn.now_ms - one.priority * pool.line_step_ms,
            lease_ms=one.lease_ms or pool.lease_ms,
        )
    )
    if one.idempotency_key:
        txn.put(
            Receipt(
                receipt_id=_receipt_id(one),
                request_digest=request_digest,
                subject_id=lease_id,
                expires_at_ms=txn.now_ms + limits.RECEIPT_MS,
            )
        )
    txn.accept(one.request_id, lease_id)


def _former_node(txn: Txn, one: AcquireLease) -> NodeId | None:
    former = txn.fleet.leases.get(one.affinity_lease_id)
    return None if former is None else former.node_id


def _is_pinned(txn: Txn, one: AcquireLease, node_id: NodeId | None) -> bool:
    """Say whether a request waits for one node; nobody waits for one that does not come back."""
    if not one.is_affinity_required and not one.affinity_wait_ms:
        return False
    return one.is_affinity_required or may_serve_again(txn.fleet.nodes.get(node_id))


def _no_pool(one: AcquireLease) -> Refused:
    return Refused(
        code="pool_not_found", message=f"there is no pool named {one.pool!r}", is_missing=True
    )


def _refusal(txn: Txn, one: AcquireLease, pool: Pool | None) -> Refused | None:
    if pool is None:
        return _no_pool(one)
    if not pool.is_enabled:
        return Refused(
            code=Reason.POOL_DISABLED.value,
            message=f"pool {pool.name} is disabled and takes no new work",
            is_conflict=True,
        )
    return _malformed(one, pool) or _affinity_problem(txn, one, pool) or _hopeless(txn, one, pool)


def _malformed(one: AcquireLease, pool: Pool) -> Refused | None:
    if not 0 <= one.timeout_ms <= limits.WAIT_MS_MAX:
        return Refused(
            code="timeout_invalid",
            message=f"timeout_ms is from 0 to {limits.WAIT_MS_MAX}, not {one.timeout_ms}",
        )
    if one.lease_ms is not None and not 0 < one.lease_ms <= pool.lease_ms:
        return Refused(
            code="lease_ms_invalid",
            message=f"lease_ms is from 1 to {pool.lease_ms} in pool {pool.name},"
            f" not {one.lease_ms}",
        )
    if _is_negative(one.requirement):
        return Refused(code="requirement_invalid", message="a requirement is never below zero")
    if one.ack_ms is not None and not 0 < one.ack_ms <= pool.lease_ms:
        return Refused(
            code="ack_ms_invalid",
            message=f"ack_ms is from 1 to {pool.lease_ms} in pool {pool.name}, not {one.ack_ms}",
        )
    if len(one.excluded_node_ids) > limits.EXCLUDED_COUNT_MAX:
        return Refused(
            code="excluded_invalid",
            message=f"at most {limits.EXCLUDED_COUNT_MAX} nodes can be excluded, not"
            f" {len(one.excluded_node_ids)}",
        )
    return None


def _affinity_problem(txn: Txn, one: AcquireLease, pool: Pool) -> Refused | None:
    """Refuse to wait for a node that cannot come, and words that do not go together."""
    is_asked = one.affinity_node_id is not None or one.affinity_lease_id is not None
    if one.affinity_node_id is not None and one.affinity_lease_id is not None:
        return _bad_affinity("name a node or a former lease to be near to, not both")
    if not 0 <= one.affinity_wait_ms <= limits.WAIT_MS_MAX:
        return _bad_affinity(f"affinity_wait_ms is from 0 to {limits.WAIT_MS_MAX}")
    if (one.is_affinity_required or one.affinity_wait_ms) and not is_asked:
        return _bad_affinity("say with affinity_node_id or affinity_lease_id what to wait for")
    node_id = one.affinity_node_id or _former_node(txn, one)
    if node_id is not None and node_id in one.excluded_node_ids:
        return _bad_affinity(f"node {node_id} is asked for and excluded")
    former = txn.fleet.leases.get(one.affinity_lease_id)
    if former is not None and former.holder != one.principal and not one.is_operator:
        return Refused(
            code="not_holder",
            message=f"lease {former.lease_id} belongs to another principal",
        )
    node = txn.fleet.nodes.get(node_id)
    is_there = node is not None and node.pool == pool.name and may_serve_again(node)
    if one.is_affinity_required and not is_there:
        named = node_id or f"the node of lease {one.affinity_lease_id}"
        return Refused(
            code=Reason.AFFINITY_GONE.value,
            message=f"{named} is not in pool {pool.name}, or will take no more leases",
            is_conflict=True,
        )
    return None


def _bad_affinity(message: str) -> Refused:
    return Refused(code="affinity_invalid", message=message)


def _is_negative(requirement: Requirement) -> bool:
    if requirement == NOTHING_REQUIRED:
        return False
    counts = [each.count for each in requirement.capabilities]
    return (
        min(requirement.capacity, requirement.cores_milli, requirement.memory_bytes, *counts, 0) < 0
    )


def _hopeless(txn: Txn, one: AcquireLease, pool: Pool) -> Refused | None:
    """Refuse what could never be served, and what would have to wait in a line that is full.

    Slots that are free now, or were given back in this very step, may yet serve as many of those
    in line; leasing counts exactly once they are given.
    """
    index = txn.fleet.index
    if one.requirement != NOTHING_REQUIRED and not could_ever_fit(txn.fleet, pool, one.requirement):
        rules = one.requirement.node_labels
        if rules and could_ever_fit(txn.fleet, pool, replace(one.requirement, node_labels=())):
            return Refused(
                code=Reason.NODE_LABELS.value,
                message=f"no node of pool {pool.name} that could serve has labels that match"
                f" {selector_text(rules)}, nor has a tier that launches such nodes",
            )
        return Refused(
            code=Reason.UNSATISFIABLE.value,
            message=f"no slot of any node or offer of pool {pool.name} could ever serve this"
            f" requirement (each node has {pool.slot_count} slots)",
        )
    waiting_count = index.leases_waiting.count(pool.name)
    if waiting_count - index.nodes_free.free_count(pool.name) >= pool.waiting_count_max:
        if one.timeout_ms == 0:
            return None  # it does not want to wait, and is told that nothing is free
        return Refused(
            code=Reason.OVERLOADED.value,
            message=f"{waiting_count} leases wait in pool {pool.name} already"
            f" (waiting_count_max {pool.waiting_count_max})",
            is_conflict=True,
        )
    return None


def _receipt_id(one: AcquireLease) -> str:
    # With its length, so that no principal can spell another's key.
    return f"lease:{len(one.principal)}:{one.principal}:{one.idempotency_key}"


def _digest(one: AcquireLease) -> str:
    asked = (
        one.pool,
        one.fairness_key,
        one.requirement,
        one.labels,
        one.priority,
        one.affinity_node_id,
        one.affinity_lease_id,
        one.affinity_wait_ms,
        one.is_affinity_required,
        one.excluded_node_ids,
        one.share,
        one.ack_ms,
        one.timeout_ms,
        one.lease_ms,
    )
    return digest(encode(asked))


def _repeat(txn: Txn, one: AcquireLease, receipt: Receipt) -> AcquireLease | None:
    """Answer a request that was taken down before: the same lease, whatever became of it.

    Only a lease that was granted and never taken up is asked for anew, since nobody has had it: the
    answer was lost. It has its node again, if that is still free.

    Returns:
        What to do anew; `None` when it is answered.
    """
    lease = txn.fleet.leases.get(LeaseId(receipt.subject_id))
    if receipt.request_digest != _digest(one):
        txn.refuse(
            one.request_id,
            "idempotency_key_reused",
            "this idempotency key was used for a different request; take a new one",
            is_conflict=True,
        )
    elif lease is None:
        txn.refuse(
            one.request_id,
            "lease_forgotten",
            f"lease {receipt.subject_id} of this idempotency key has ended and is forgotten",
            is_conflict=True,
        )
    elif lease.outcome is LeaseOutcome.UNACKNOWLEDGED:
        is_near = one.affinity_node_id is not None or one.affinity_lease_id is not None
        return one if is_near else replace(one, affinity_node_id=lease.node_id)
    else:
        txn.accept(one.request_id, receipt.subject_id, is_repeat=True)
    return None
