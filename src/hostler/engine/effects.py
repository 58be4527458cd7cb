"""What would follow at once from a request, counted for people who are about to make it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyRequest
from hostler.core.replies import Refused
from hostler.engine.dry_run import dry_run
from hostler.model import Lease, Node
from hostler.model.lease import LeasePhase


class Effect(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The same thing happening to several nodes or leases of a pool."""

    pool: str
    effect: str
    reason: str
    count: int


class Foreseen(msgspec.Struct, frozen=True, kw_only=True):
    """What a request would come to."""

    refusal: Refused | None
    effects: list[Effect]


def foresee(fleet: Fleet, request: AnyRequest, now_ms: int) -> Foreseen:
    """Make a request on a fleet that has no step open, undo it, and count what it did."""
    nodes, leases = dict(fleet.nodes.rows), dict(fleet.leases.rows)
    made = dry_run(fleet, [request], now_ms)
    found: Counter[tuple[str, str, str]] = Counter()
    for (kind, key), record in made.changes.items():
        if kind == Node.KIND and isinstance(record, Node):
            found.update(_of_node(nodes.get(key), record))
        elif kind == Lease.KIND and isinstance(record, Lease):
            found.update(_of_lease(leases.get(key), record))
    result = made.results.get(request.request_id)
    return Foreseen(
        refusal=result if isinstance(result, Refused) else None,
        effects=sorted(
            Effect(pool=pool, effect=effect, reason=reason, count=count)
            for (pool, effect, reason), count in found.items()
        ),
    )


def _of_node(before: Node | None, after: Node) -> Iterator[tuple[str, str, str]]:
    if before is None:
        yield after.pool, "launched", ""
        return
    if after.retire_reason is not None and before.retire_reason is None:
        yield after.pool, "retired", after.retire_reason.value
    elif after.replace_reason is not None and before.replace_reason is None:
        yield after.pool, "replaced", after.replace_reason.value
    if after.drain is not None and before.drain is None:
        yield after.pool, "drained", f"by {after.drain.by}"
    elif after.drain is None and before.drain is not None:
        yield after.pool, "undrained", ""


def _of_lease(before: Lease | None, after: Lease) -> Iterator[tuple[str, str, str]]:
    if before is None:
        return
    if before.phase is LeasePhase.WAITING and after.phase is LeasePhase.REFUSED:
        yield after.pool, "refused", "" if after.reason is None else after.reason.value
    elif after.retiring_at_ms is not None and before.retiring_at_ms is None:
        yield after.pool, "asked_to_leave", ""
