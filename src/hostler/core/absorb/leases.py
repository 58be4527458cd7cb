"""Requests about leases: taken down, renewed, ended. Who gets which slot is for leasing to decide.

A lease is settled at most once and by its holder or an operator only. A request that comes late or
again is answered as the first one was and touches nothing; in particular not the next lease.
"""

from __future__ import annotations

from typing import Final

from hostler.base.encoding import digest, encode
from hostler.base.ids import LeaseId
from hostler.core import holds, limits
from hostler.core.events import EventKind
from hostler.core.inputs import AcquireLease, HeartbeatLease, ReleaseLease
from hostler.core.replies import Refused
from hostler.core.slots import could_ever_fit
from hostler.core.txn import Txn
from hostler.model import Lease, Pool, Receipt
from hostler.model.lease import LeaseOutcome, LeasePhase, LeaseTrigger
from hostler.model.reason import Reason
from hostler.model.shape import NOTHING_REQUIRED, Requirement

_SAID_BY_HOLDERS: Final = (LeaseOutcome.HEALTHY, LeaseOutcome.POISON)
_SAID_BY_OPERATORS: Final = (*_SAID_BY_HOLDERS, LeaseOutcome.REVOKED)


def acquire(txn: Txn, one: AcquireLease) -> None:
    """Put a request into line, unless it can be seen that standing there would be no use."""
    if one.idempotency_key:
        receipt = txn.fleet.receipts.get(_receipt_id(one))
        if receipt is not None and receipt.expires_at_ms > txn.now_ms:
            _repeat(txn, one, receipt)
            return
    pool = txn.fleet.pools.get(one.pool)
    refusal = _refusal(txn, one, pool)
    if refusal is not None or pool is None:
        txn.reply(one.request_id, refusal or _no_pool(one))
        return
    lease_id = LeaseId(txn.mint("l"))
    txn.put(
        Lease(
            lease_id=lease_id,
            pool=pool.name,
            holder=one.principal,
            fairness_key=one.fairness_key or one.principal,
            requirement=one.requirement,
            labels=one.labels,
            priority=one.priority,
            affinity_node_id=one.affinity_node_id,
            phase=LeasePhase.WAITING,
            phase_since_at_ms=txn.now_ms,
            requested_at_ms=txn.now_ms,
            wait_deadline_at_ms=txn.now_ms + one.timeout_ms,
            lease_ms=one.lease_ms or pool.lease_ms,
        )
    )
    if one.idempotency_key:
        txn.put(
            Receipt(
                receipt_id=_receipt_id(one),
                request_digest=_digest(one),
                subject_id=lease_id,
                expires_at_ms=txn.now_ms + limits.RECEIPT_MS,
            )
        )
    txn.accept(one.request_id, lease_id)


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
    return _malformed(one, pool) or _hopeless(txn, one, pool)


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
    return None


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
        one.timeout_ms,
        one.lease_ms,
    )
    return digest(encode(asked))


def _repeat(txn: Txn, one: AcquireLease, receipt: Receipt) -> None:
    """Answer a request that was taken down before: the same lease, whatever became of it."""
    if receipt.request_digest != _digest(one):
        txn.refuse(
            one.request_id,
            "idempotency_key_reused",
            "this idempotency key was used for a different request; take a new one",
            is_conflict=True,
        )
    elif receipt.subject_id not in txn.fleet.leases:
        txn.refuse(
            one.request_id,
            "lease_forgotten",
            f"lease {receipt.subject_id} of this idempotency key has ended and is forgotten",
            is_conflict=True,
        )
    else:
        txn.accept(one.request_id, receipt.subject_id, is_repeat=True)


def heartbeat(txn: Txn, one: HeartbeatLease) -> None:
    """Renew a lease that is still held under this epoch."""
    lease = _allowed(txn, one)
    if lease is None:
        return
    if lease.phase is LeasePhase.WAITING:
        txn.refuse(
            one.request_id, "lease_not_held", "the lease still waits in line", is_conflict=True
        )
    elif not _is_held_now(txn, lease):
        ended = lease.outcome or lease.reason or LeaseOutcome.EXPIRED
        txn.refuse(
            one.request_id,
            "lease_ended",
            f"the lease has ended ({ended.value}); acquire a new one",
            is_conflict=True,
        )
    else:
        txn.change(lease, heartbeat_at_ms=txn.now_ms, expires_at_ms=txn.now_ms + lease.lease_ms)
        txn.accept(one.request_id, lease.lease_id)


def server_started(txn: Txn) -> None:
    """Give every holder its whole time to be heard: nobody listened while the server was away.

    The longest hold that a pool allows goes on counting; it has nothing to do with silence.
    """
    held = txn.fleet.index.leases_held
    for pool in held.buckets():
        for lease_id in held.keys(pool):
            lease = txn.fleet.leases[lease_id]
            txn.change(lease, expires_at_ms=txn.now_ms + lease.lease_ms)


def release(txn: Txn, one: ReleaseLease) -> None:
    """End a held lease with an outcome, or leave the line; once ended, nothing changes any more."""
    lease = _allowed(txn, one)
    if lease is None:
        return
    allowed = _SAID_BY_OPERATORS if one.is_operator else _SAID_BY_HOLDERS
    if one.outcome not in allowed:
        txn.refuse(
            one.request_id,
            "outcome_not_allowed",
            f"outcome is one of {', '.join(allowed)}, not {one.outcome}",
        )
        return
    if lease.phase is LeasePhase.WAITING:
        _cancel(txn, lease, one.principal)
        txn.accept(one.request_id, lease.lease_id)
    elif _is_held_now(txn, lease):
        holds.settle_lease(txn, lease, one.outcome, one.detail)
        txn.accept(one.request_id, lease.lease_id)
    else:
        txn.accept(one.request_id, lease.lease_id, is_repeat=True)


def _cancel(txn: Txn, lease: Lease, by: str) -> None:
    txn.move(
        lease,
        LeaseTrigger.REFUSED,
        reason=Reason.CANCELLED,
        reason_detail=f"by {by} after {txn.now_ms - lease.requested_at_ms} ms in line",
    )
    txn.emit(
        EventKind.LEASE_REFUSED,
        {"lease": lease.lease_id, "pool": lease.pool},
        reason=Reason.CANCELLED.value,
    )


def _is_held_now(txn: Txn, lease: Lease) -> bool:
    """Say whether a lease is held and its time has not run out, even if that is yet to be told."""
    return (
        lease.phase is LeasePhase.HELD
        and (lease.expires_at_ms is None or lease.expires_at_ms > txn.now_ms)
        and (lease.ends_at_ms is None or lease.ends_at_ms > txn.now_ms)
    )


def _allowed(txn: Txn, one: HeartbeatLease | ReleaseLease) -> Lease | None:
    """Return the lease that the principal may touch under this epoch; otherwise refuse."""
    lease = txn.fleet.leases.get(one.lease_id)
    if lease is None:
        txn.refuse(
            one.request_id,
            "lease_not_found",
            f"there is no lease {one.lease_id}, or it ended long ago",
            is_missing=True,
        )
        return None
    if one.principal != lease.holder and not one.is_operator:
        txn.refuse(
            one.request_id,
            "not_holder",
            f"lease {lease.lease_id} belongs to another principal",
        )
        return None
    if one.epoch is not None and one.epoch != lease.epoch:
        txn.refuse(
            one.request_id,
            "epoch_stale",
            f"lease {lease.lease_id} has epoch {lease.epoch}, not {one.epoch}",
            is_conflict=True,
        )
        return None
    return lease
