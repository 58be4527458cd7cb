"""What `hostler explain pending` says: a table of what waits, then what would help each group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hostler.base.units import format_duration
from hostler.cli.output import At, Column, counted, table
from hostler.wire.http import PendingGroupView, PendingView

_Numbered = tuple[int, PendingGroupView]


def waiting(view: PendingView, *, now_ms: int, is_wide: bool, is_colour: bool) -> Iterator[str]:
    """Tell everything that waits."""
    if not view.groups:
        yield "Nothing waits."
        return
    replicas, leases = counted(view.replica_count, "replica"), counted(view.lease_count, "lease")
    yield f"{replicas} and {leases} wait, the most urgent first."
    yield ""
    rows = list(enumerate(view.groups, start=1))
    yield from table(rows, _COLUMNS, now_ms=now_ms, is_wide=is_wide, is_colour=is_colour)
    for number, group in rows:
        yield ""
        yield from _group(number, group, now_ms)
    if view.left_out_count:
        yield ""
        yield f"and {counted(view.left_out_count, 'more group')}."


_COLUMNS: Final[tuple[Column[_Numbered], ...]] = (
    Column("", lambda row: row[0]),
    Column("WAITS FOR", lambda row: row[1].reason or "the next step"),
    Column("COUNT", lambda row: row[1].count),
    Column("KIND", lambda row: row[1].kind),
    Column("STATE", lambda row: row[1].phase, is_state=True),
    Column("BAND", lambda row: row[1].band),
    Column("NEEDS", lambda row: row[1].needs),
    Column("POOLS", lambda row: ",".join(row[1].pools)),
    Column("SINCE", lambda row: At(row[1].since_at_ms)),
    Column("FIRST", lambda row: row[1].examples[0] if row[1].examples else None),
    Column("DETAIL", lambda row: row[1].detail, is_wide=True),
)


def _group(number: int, group: PendingGroupView, now_ms: int) -> Iterator[str]:
    more = group.count - len(group.examples)
    names = ", ".join(group.examples) + (f" and {more} more" if more > 0 else "")
    yield f"{number}. {names}"
    if group.reason is None:
        yield "   There is a place now; the next step takes it."
        return
    yield f"   {group.reason}: {group.detail}" if group.detail else f"   {group.reason}"
    yield f"   {group.meaning} {group.advice}"
    if group.helps:
        yield "   What would help:"
        yield from (f"     {text}" for text in group.helps)
    if group.next_at_ms is not None:
        rest_ms = group.next_at_ms - now_ms
        when = f"in {format_duration(rest_ms)}" if rest_ms > 0 else "now"
        yield f"   Looked at again {when}, if nothing happens before."
