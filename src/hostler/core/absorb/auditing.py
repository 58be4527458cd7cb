"""Writing down who changed what, and who was refused.

An entry is a record of the step that made the change, so one is never there without the other.
Asking for a lease, renewing it and giving it back are not in the audit: the lease itself tells its
holder, and these come by the thousand. Whoever ends or extends the lease of somebody else is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hostler.core.asking import AccessNoted, Request
from hostler.core.inputs import (
    AcquireLease,
    CreateToken,
    ExtendLease,
    HeartbeatLease,
    JoinAgent,
    ReleaseLease,
)
from hostler.core.maintenance_inputs import AddMaintenance
from hostler.core.replies import Accepted
from hostler.core.txn import Txn
from hostler.model import AuditEntry, Counter, Receipt
from hostler.model.audit import AUDIT_PREFIX, AuditOutcome, Origin
from hostler.model.record import Record

Written = Mapping[tuple[str, str], Record | None]

CHANGED_TOLD_MAX: Final = 20
"""Records named in one entry; a configuration may change thousands."""

TEXT_LENGTH_MAX: Final = 200
"""Of one value in an entry."""

_NOUNS: Final = {
    "node_id": "node",
    "bundle_id": "bundle",
    "replica_id": "replica",
    "lease_id": "lease",
    "token_id": "token",
    "pool": "pool",
    "maintenance_name": "maintenance",
}

_MADE: Final[dict[type[Request], str]] = {
    AddMaintenance: "maintenance",
    CreateToken: "token",
    JoinAgent: "node",
}
"""What the answer to a request names, where the request itself does not."""

_UNTOLD: Final = frozenset((*Request.__struct_fields__, *_NOUNS, "sha256", "is_operator", "config"))


def before(txn: Txn, one: Request) -> Written | None:
    """Return what the step has written so far; `None` for a request that is not audited."""
    match one:
        case AcquireLease() | HeartbeatLease():
            return None
        case ReleaseLease() | ExtendLease():
            lease = txn.fleet.leases.get(one.lease_id)
            if lease is None or lease.holder == one.principal:
                return None
        case _:
            pass
    return txn.written()


def keep(txn: Txn, one: Request, written_before: Written) -> None:
    """Write down a request that was accepted and changed something."""
    answer = txn.answer_to(one.request_id)
    if not isinstance(answer, Accepted) or answer.is_repeat:
        return
    changed = [
        f"{kind}/{key}"
        for (kind, key), record in txn.written().items()
        if kind not in (Counter.KIND, Receipt.KIND, AuditEntry.KIND)
        and ((kind, key) not in written_before or written_before[(kind, key)] is not record)
    ]
    if not changed:
        return
    about = {
        noun: value
        for name, noun in _NOUNS.items()
        if isinstance(value := getattr(one, name, None), str) and value
    }
    made = _MADE.get(type(one))
    if made is not None:
        about[made] = answer.subject_id
    txn.put(
        AuditEntry(
            number=_number(txn),
            at_ms=txn.now_ms,
            principal=one.principal,
            origin=one.origin or Origin(),
            action=str(type(one).__struct_config__.tag),
            about=about,
            data=_data(one),
            changed=tuple(changed[:CHANGED_TOLD_MAX]),
            changed_count=len(changed),
            request_id=one.request_id,
            event_seq=txn.fleet.event_seq,
        )
    )


def _data(one: Request) -> dict[str, str | int | bool | None]:
    """Return what was asked for, as far as it is one value and not what it is anyway."""
    defaults = dict(
        zip(reversed(one.__struct_fields__), reversed(one.__struct_defaults__), strict=False)
    )
    told: dict[str, str | int | bool | None] = {}
    for name in one.__struct_fields__:
        value = getattr(one, name)
        if name in _UNTOLD or not isinstance(value, str | int) or value == defaults.get(name):
            continue
        told[name] = value[:TEXT_LENGTH_MAX] if isinstance(value, str) else value
    return told


def noted(txn: Txn, one: AccessNoted) -> None:
    """Write down that somebody was refused, or did something beside the records."""
    txn.put(
        AuditEntry(
            number=_number(txn),
            at_ms=txn.now_ms,
            principal=one.principal,
            origin=one.origin,
            action=one.action,
            about=one.about,
            outcome=AuditOutcome.REFUSED if one.code else AuditOutcome.DONE,
            code=one.code,
            count=one.count,
            event_seq=txn.fleet.event_seq,
        )
    )


def _number(txn: Txn) -> int:
    return int(txn.mint(AUDIT_PREFIX).rpartition("-")[2])
