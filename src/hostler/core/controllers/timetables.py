"""Timetables: keeps the shift of each bundle that has one, and ends what has nothing to come.

Reads:    bundles, shifts, time zones, pools (how long ahead), settings.
Writes:   shifts; bundles (an operator's word ends with the shift; deleted after the last one if it
          is to be), allocations (reserved ones: when they start).
Sends:    nothing.
Keeps:    INV-SHIFT-1.
Waits on: OUTSIDE_TIMETABLE (through admission).

Places are taken as long before the beginning as the slowest tier of the bundle's pools needs, so
that a machine can be booted; what has got a place on a machine that is there is started later, as
long before as a fixed tier needs. Whoever was not there at the beginning finds the span that holds
and acts by the timetable's policy; a span that was over by then is no event at all.
"""

from __future__ import annotations

from typing import Final

from hostler.core import timetable
from hostler.core.calendar import Span
from hostler.core.events import EventKind
from hostler.core.txn import Txn
from hostler.model import Bundle, Pool, Shift, TimeZone
from hostler.model.allocation import AllocationPhase
from hostler.model.bundle import BundlePhase, BundleTrigger
from hostler.model.pool import TierKind
from hostler.model.timetable import Missed, Timetable

READS: Final = (Bundle, Shift, TimeZone, Pool)


def reconcile(txn: Txn) -> None:
    """Look at the timetable of every bundle for which something has changed or come due."""
    ids = dict.fromkeys((*txn.changed_keys(Bundle), *txn.changed_keys(Shift)))
    if txn.changed_keys(TimeZone) or txn.changed_keys(Pool):
        ids.update(dict.fromkeys(sorted(txn.fleet.shifts.rows)))
    for bundle_id in ids:
        _keep(txn, bundle_id)


def _keep(txn: Txn, bundle_id: str) -> None:
    bundle, known = txn.fleet.bundles.get(bundle_id), txn.fleet.shifts.get(bundle_id)
    if bundle is None or bundle.timetable is None or bundle.phase is not BundlePhase.ACTIVE:
        if known is not None:
            txn.remove(known)
        return
    shift = _shift(txn, bundle, bundle.timetable, known)
    if shift == known:
        return
    is_over = shift.from_at_ms is None and shift.timetable.is_deleted_after
    if not is_over:
        txn.put(shift)
    elif known is not None:
        txn.remove(known)
    _tell(txn, bundle, known, shift)
    if known is not None and known.is_on and not shift.is_on:
        bundle = txn.change(bundle, switched={})
    _move_starts(txn, bundle, shift)
    if is_over:
        txn.move(bundle, BundleTrigger.DELETION_REQUESTED)
        txn.emit(EventKind.BUNDLE_DELETION_REQUESTED, {"bundle": bundle_id, "principal": "hostler"})


def _shift(txn: Txn, bundle: Bundle, wanted: Timetable, known: Shift | None) -> Shift:
    is_same = known is not None and known.timetable == wanted
    since_at_ms = known.since_at_ms if known is not None and is_same else txn.now_ms
    base = Shift(bundle_id=bundle.bundle_id, timetable=wanted, since_at_ms=since_at_ms)
    span = timetable.next_span(txn.fleet, wanted, txn.now_ms)
    if span is None:
        return base
    before = known if known is not None and is_same and _goes_on(known, span) else None
    from_at_ms = span.from_at_ms if before is None else before.from_at_ms or span.from_at_ms
    lead_ms = timetable.lead_ms(txn.fleet, bundle)
    apart_from_at_ms = 0 if before is None else before.apart_from_at_ms
    if before is None and known is not None and known.is_on and known.to_at_ms == txn.now_ms:
        apart_from_at_ms = txn.now_ms + 1
    place_at_ms = max(from_at_ms - lead_ms, apart_from_at_ms)
    run_ahead_ms = min(lead_ms, timetable.LEAD_MS[TierKind.FIXED])
    is_due = place_at_ms <= txn.now_ms
    was_on = before is not None and before.is_on
    is_missed = is_due and not was_on and _is_missed(txn, wanted, since_at_ms, span)
    is_skipped = (before is not None and before.is_skipped) or (
        is_missed and wanted.missed is Missed.SKIP
    )
    return Shift(
        bundle_id=bundle.bundle_id,
        timetable=wanted,
        since_at_ms=since_at_ms,
        apart_from_at_ms=apart_from_at_ms,
        place_at_ms=place_at_ms,
        run_at_ms=from_at_ms - run_ahead_ms,
        from_at_ms=from_at_ms,
        to_at_ms=None if span.to_at_ms >= timetable.FOR_EVER_MS else span.to_at_ms,
        # A change of a lead does not take back what is on its way.
        is_on=(is_due or was_on) and not is_skipped,
        is_skipped=is_skipped,
    )


def _goes_on(known: Shift, span: Span) -> bool:
    """Say whether a span is the known shift: of windows that touch only what is left is found."""
    if known.from_at_ms is None or known.from_at_ms == span.from_at_ms:
        return known.from_at_ms is not None
    end_ms = timetable.FOR_EVER_MS if known.to_at_ms is None else known.to_at_ms
    return known.is_on and known.from_at_ms < span.from_at_ms <= end_ms - 1


def _is_missed(txn: Txn, wanted: Timetable, since_at_ms: int, span: Span) -> bool:
    """Say whether the beginning is too long ago, and was there to be seen."""
    is_late = txn.now_ms > span.from_at_ms + wanted.grace_ms
    return is_late and since_at_ms <= span.from_at_ms


def _tell(txn: Txn, bundle: Bundle, known: Shift | None, shift: Shift) -> None:
    about: dict[str, str] = {"bundle": bundle.bundle_id}
    was_on = known is not None and known.is_on
    is_new = known is None or known.from_at_ms != shift.from_at_ms
    if was_on and (not shift.is_on or is_new):
        txn.emit(EventKind.SHIFT_ENDED, about, from_at_ms=known.from_at_ms if known else None)
    if shift.is_on and (not was_on or is_new):
        late_ms = max(0, txn.now_ms - (shift.from_at_ms or txn.now_ms))
        txn.emit(
            EventKind.SHIFT_BEGUN,
            about,
            from_at_ms=shift.from_at_ms,
            to_at_ms=shift.to_at_ms,
            late_ms=late_ms,
        )
    if shift.is_skipped and (is_new or known is None or not known.is_skipped):
        txn.emit(EventKind.SHIFT_SKIPPED, about, from_at_ms=shift.from_at_ms)


def _move_starts(txn: Txn, bundle: Bundle, shift: Shift) -> None:
    """Let what waits for its beginning follow an edit of it."""
    for key in txn.fleet.index.allocations_by_bundle.keys(bundle.bundle_id):
        allocation = txn.fleet.allocations[key]
        is_held = allocation.start_at_ms is not None
        if is_held and allocation.phase is AllocationPhase.RESERVED and shift.is_on:
            txn.change(allocation, start_at_ms=shift.run_at_ms)
