"""Requests about leases that were asked for: renewed, ended.

A lease is settled at most once and by its holder or an operator only. A request that comes late or
again is answered as the first one was and touches nothing; in particular not the next lease.
"""

from __future__ import annotations

from typing import Final

from hostler.base.units import format_duration
from hostler.core import holds
from hostler.core.events import EventKind
from hostler.core.inputs import ExtendLease, HeartbeatLease, ReleaseLease
from hostler.core.txn import Txn
from hostler.model import Lease
from hostler.model.lease import LeaseOutcome, LeasePhase, LeaseTrigger
from hostler.model.reason import Reason

_SAID_BY_HOLDERS: Final = (LeaseOutcome.HEALTHY, LeaseOutcome.POISON)
_SAID_BY_OPERATORS: Final = (*_SAID_BY_HOLDERS, LeaseOutcome.REVOKED)


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
        txn.change(
            lease,
            heartbeat_at_ms=txn.now_ms,
            is_acknowledged=True,
            expires_at_ms=txn.now_ms + lease.lease_ms,
        )
        txn.accept(one.request_id, lease.lease_id)


def extend(txn: Txn, one: ExtendLease) -> None:
    """Let a holder stay longer on a node that is to go, within the bound that it was told."""
    lease = _allowed(txn, one)
    if lease is None:
        return
    until_ms, most_ms = lease.retiring_at_ms, lease.retiring_at_ms_max
    if not _is_held_now(txn, lease):
        txn.refuse(
            one.request_id, "lease_not_held", f"the lease is {lease.phase.value}", is_conflict=True
        )
    elif until_ms is None or most_ms is None:
        txn.refuse(one.request_id, "lease_not_retiring", "its node is not to go", is_conflict=True)
    elif one.by_ms <= 0 or until_ms + one.by_ms > most_ms:
        txn.refuse(
            one.request_id,
            "extension_invalid",
            f"by_ms is from 1 to {most_ms - until_ms} now, not {one.by_ms}"
            " (retire_extension_max of the pool)",
        )
    else:
        txn.change(lease, retiring_at_ms=until_ms + one.by_ms)
        txn.accept(one.request_id, lease.lease_id)


def server_started(txn: Txn) -> None:
    """Give every holder its whole time to be heard: nobody listened while the server was away.

    The longest hold that a pool allows goes on counting; it has nothing to do with silence.
    """
    held = txn.fleet.index.leases_held
    for pool in held.buckets():
        for lease_id in held.keys(pool):
            lease = txn.fleet.leases[lease_id]
            lasts_ms = lease.lease_ms if lease.is_acknowledged else lease.ack_ms or 0
            txn.change(lease, expires_at_ms=txn.now_ms + lasts_ms)


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
    waited = format_duration(txn.now_ms - lease.requested_at_ms)
    txn.move(
        lease,
        LeaseTrigger.REFUSED,
        reason=Reason.CANCELLED,
        reason_detail=f"by {by} after {waited} in line",
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
        and (lease.retiring_at_ms is None or lease.retiring_at_ms > txn.now_ms)
    )


def _allowed(txn: Txn, one: HeartbeatLease | ExtendLease | ReleaseLease) -> Lease | None:
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
