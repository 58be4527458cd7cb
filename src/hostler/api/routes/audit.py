"""The audit, asked by who, about what, and since when; read backwards, or followed as it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from litestar import Response, get

from hostler.api import limits
from hostler.api.context import Api, api_of, or_stopping
from hostler.api.convert.audit import entry as view_of
from hostler.api.errors import Denied, HttpRequest
from hostler.api.http import (
    PAGING,
    Operation,
    Parameter,
    Query,
    answer,
    decode_cursor,
    described,
    encode_cursor,
)
from hostler.base.ids import numbered
from hostler.core.fleet import Fleet
from hostler.model import AuditEntry, Counter
from hostler.model.audit import AUDIT_PREFIX, AuditOutcome
from hostler.model.record import Record
from hostler.model.token import Role
from hostler.wire.http import WAIT_MS_MAX, AuditView, Page

LOOKED_AT_MAX: Final = 5_000
"""Entries looked at for one page, some 5 ms; a filter that few pass gets shorter pages."""

_AT_MS_MAX: Final = 2**53


class _Filter:
    """Which entries are wanted."""

    def __init__(self, query: Query) -> None:
        self._by = query.text("by")
        self._subject = query.text("subject").rpartition(":")[2]
        self._action = query.text("action")
        self._outcome = query.text("outcome")
        if self._outcome and self._outcome not in list(AuditOutcome):
            raise Denied(400, "parameter_invalid", "`outcome` is done or refused")
        self.since_at_ms = query.number("since_at_ms", most=_AT_MS_MAX) or 0
        self.until_at_ms = query.number("until_at_ms", most=_AT_MS_MAX, default=_AT_MS_MAX)

    def takes(self, entry: AuditEntry) -> bool:
        """Say whether an entry is wanted."""
        return (
            (not self._by or self._by in (entry.principal, entry.origin.token_id))
            and (not self._subject or self._is_about(entry))
            and (not self._action or self._action == entry.action)
            and (not self._outcome or self._outcome == entry.outcome)
            and self.since_at_ms <= entry.at_ms <= (self.until_at_ms or _AT_MS_MAX)
        )

    def _is_about(self, entry: AuditEntry) -> bool:
        names = (*entry.about.values(), entry.origin.remote, *entry.changed)
        return any(self._subject in (name, name.partition("/")[2]) for name in names)


@get(
    "/v1/audit",
    **described(
        Operation(
            summary="Who changed what, from where, and who was refused; the newest first",
            answer=Page[AuditView],
            role=Role.OPERATOR,
            parameters=(
                *PAGING,
                Parameter("by", "string", "Only of this principal, or shown with this token id."),
                Parameter("subject", "string", "Only about this id, or from this address."),
                Parameter("action", "string", "Only this action, such as `drain_node`."),
                Parameter("outcome", "string", "Only `done`, or only `refused`."),
                Parameter("since_at_ms", "integer", "Only from this instant on."),
                Parameter("until_at_ms", "integer", "Only up to this instant."),
                Parameter("after", "string", "Only after this entry's id, and the oldest first."),
                Parameter(
                    "wait_ms",
                    "integer",
                    f"With `after`: wait so long for there to be one, {WAIT_MS_MAX} at most.",
                ),
            ),
        )
    ),
)
async def list_all(request: HttpRequest) -> Response[bytes]:
    """A page may be short, or empty, with a cursor: what was looked at did not pass the filter."""
    api, query = api_of(request), Query(request)
    wanted = _Filter(query)
    limit = query.number("limit", most=limits.PAGE_COUNT_MAX) or limits.PAGE_COUNT_DEFAULT
    last = _number(decode_cursor(query.text("cursor"))) or _number(query.text("after"))
    is_onward = bool(query.text("after"))
    wait_ms = query.number("wait_ms", most=WAIT_MS_MAX) or 0
    ends_at_s = time.monotonic() + wait_ms / 1_000
    while True:
        found, newest = await api.engine.read(
            lambda fleet: (
                _page(fleet, wanted, limit, last, is_onward=is_onward),
                _newest(fleet),
            )
        )
        left_ms = int((ends_at_s - time.monotonic()) * 1_000)
        is_over = found.items or found.next_cursor or left_ms <= 0 or api.stopping.is_set()
        if is_over or not is_onward:
            return answer(found)
        await _wait_beyond(api, newest, left_ms)


def _number(audit_id: str) -> int:
    """Read the number of an entry's id; zero of nothing.

    Raises:
        Denied: It is not an entry's id.
    """
    prefix, _, number = audit_id.partition("-")
    if not audit_id:
        return 0
    if prefix != AUDIT_PREFIX or not (number.isascii() and number.isdigit()):
        told = f"`after` is the id of an entry, such as {numbered(AUDIT_PREFIX, 12)}"
        raise Denied(400, "parameter_invalid", told)
    return int(number)


def _newest(fleet: Fleet) -> int:
    counter = fleet.counters.get(AUDIT_PREFIX)
    return 0 if counter is None else counter.value


async def _wait_beyond(api: Api, newest: int, wait_ms: int) -> None:
    """Return when there is a newer entry, or after a while."""

    def is_newer(counter: Record | None) -> bool:
        return isinstance(counter, Counter) and counter.value > newest

    watching = api.engine.watch(Counter.KIND, AUDIT_PREFIX, is_newer, wait_ms)
    await or_stopping(api, watching)


def _page(
    fleet: Fleet, wanted: _Filter, limit: int, last: int, *, is_onward: bool
) -> Page[AuditView]:
    items: list[AuditView] = []
    is_cut, looked_at = False, 0
    for entry in _in_turn(fleet, last, is_onward=is_onward):
        if not is_onward and entry.at_ms < wanted.since_at_ms:
            break  # they are older from here on
        if len(items) == limit or looked_at == LOOKED_AT_MAX:
            is_cut = True
            break
        looked_at, last = looked_at + 1, entry.number
        if wanted.takes(entry):
            items.append(view_of(entry))
    return Page(
        items=items,
        next_cursor=encode_cursor(numbered(AUDIT_PREFIX, last)) if is_cut else None,
        revision=fleet.revision,
        event_seq=fleet.event_seq,
    )


def _in_turn(fleet: Fleet, last: int, *, is_onward: bool) -> Iterator[AuditEntry]:
    """Give the entries behind a number, in the direction of reading."""
    rows = fleet.audit.rows
    numbers = sorted(entry.number for entry in rows.values())
    if not is_onward:
        numbers.reverse()
    for number in numbers:
        if last == 0 or (number > last if is_onward else number < last):
            yield rows[numbered(AUDIT_PREFIX, number)]


ROUTES = [list_all]
