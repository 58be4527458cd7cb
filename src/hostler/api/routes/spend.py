"""Spend: what was used by what, and what budgets have left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from litestar import Response, get

from hostler.api import limits
from hostler.api.context import api_of
from hostler.api.convert import spend as views
from hostler.api.errors import Denied, HttpRequest
from hostler.api.http import PAGING, Operation, Parameter, Query, answer, described
from hostler.core.fleet import Fleet
from hostler.core.spend_days import day_number
from hostler.model.token import Role
from hostler.wire.http import BudgetLineView, Page, SpendView

V = TypeVar("V")

_ALWAYS: Final = 2**40


@get(
    "/v1/spend",
    **described(
        Operation(
            summary="What was used, by pool, tier, offer, key, bundle, day or month",
            answer=Page[SpendView],
            role=Role.VIEWER,
            parameters=(
                Parameter("by", "string", f"Any of {', '.join(views.GROUPS)}, with commas."),
                Parameter("since", "string", "First day, `2026-11-01`."),
                Parameter("until", "string", "Last day, `2026-11-30`."),
                Parameter("pool", "string", "Only of this pool."),
                *PAGING,
            ),
        )
    ),
)
async def spend(request: HttpRequest) -> Response[bytes]:
    """Machines from their start to their confirmed end; with `key` or `bundle` their parts.

    A day is one of the books' time zone. What runs is counted until now.
    """
    query = Query(request)
    by = [each.strip() for each in (query.text("by") or "pool").split(",")]
    unknown = [each for each in by if each not in views.GROUPS]
    if unknown:
        told = f"`by` takes {', '.join(views.GROUPS)}, not {', '.join(unknown)}"
        raise Denied(400, "parameter_invalid", told)
    if "key" in by and ("bundle" in by or "tier" in by or "offer" in by):
        told = "leases and bundles are counted by pool: leave tier and offer out, ask for one"
        raise Denied(400, "parameter_invalid", told)
    since, until = _day(query, "since", -_ALWAYS), _day(query, "until", _ALWAYS)
    api = api_of(request)

    def read(fleet: Fleet) -> list[SpendView]:
        now_ms = max(api.engine.clock.now_ms(), fleet.now_ms)
        pool = query.text("pool")
        return views.rows(fleet, by, since=since, until=until, pool=pool, now_ms=now_ms)

    return await _page(request, query, read)


def _day(query: Query, name: str, default: int) -> int:
    text = query.text(name)
    if not text:
        return default
    try:
        return day_number(text)
    except ValueError as error:
        told = f"`{name}` is a day such as 2026-11-30, not {text!r}"
        raise Denied(400, "parameter_invalid", told) from error


@get(
    "/v1/budgets",
    **described(
        Operation(
            summary="What budgets have left",
            answer=Page[BudgetLineView],
            role=Role.VIEWER,
            parameters=PAGING,
        )
    ),
)
async def budgets(request: HttpRequest) -> Response[bytes]:
    """One line for each quantity that is bounded."""
    api = api_of(request)

    def read(fleet: Fleet) -> list[BudgetLineView]:
        now_ms = max(api.engine.clock.now_ms(), fleet.now_ms)
        return [
            line
            for budget in fleet.budgets.in_order()
            for line in views.budget_lines(fleet, budget, now_ms)
        ]

    return await _page(request, Query(request), read)


async def _page(
    request: HttpRequest, query: Query, read: Callable[[Fleet], list[V]]
) -> Response[bytes]:
    """Answer with a part of what is worked out anew; the cursor is how much came before."""
    limit = query.number("limit", most=limits.PAGE_COUNT_MAX) or limits.PAGE_COUNT_DEFAULT
    cursor = query.text("cursor")
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        told = "this cursor is not one that a page gave; begin without one"
        raise Denied(400, "cursor_invalid", told)
    begin = int(cursor or 0)

    def cut(fleet: Fleet) -> Page[V]:
        found = read(fleet)
        end = begin + limit
        return Page(
            items=found[begin:end],
            next_cursor=str(end) if len(found) > end else None,
            revision=fleet.revision,
            event_seq=fleet.event_seq,
        )

    return answer(await api_of(request).engine.read(cut))


ROUTES = [spend, budgets]
