"""What `hostler explain` says: a sentence, the reasons, what comes next, the last decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from hostler.base.units import format_duration
from hostler.cli.kinds import ALLOCATIONS, BUNDLES, LEASES, NODES, POOLS, REPLICAS, Filters, Kind
from hostler.cli.kinds import not_found as nothing_of
from hostler.cli.output import age
from hostler.cli.remote import now_ms
from hostler.client import ClientError
from hostler.wire.http import AttemptView, DecisionView, ExplainView

if TYPE_CHECKING:
    from hostler.client import SyncClient

SHOWN_COUNT: Final = 5
"""Nodes shown of each list of an attempt; `-o json` has all that the server keeps."""

_KIND_BY_PREFIX: Final[dict[str, Kind[Any]]] = {"n-": NODES, "a-": ALLOCATIONS, "l-": LEASES}


def fetch(client: SyncClient, about: str, node_id: str | None) -> ExplainView:
    """Ask why something is as it is, and what keeps it from a node if one is named.

    Raises:
        CommandError: There is nothing of that id; the message names near ones.
    """
    try:
        return client.explain(about, node=node_id)
    except ClientError as error:
        if error.status != 404:
            raise
        if node_id is not None and "node" in error.message:
            NODES.fetch(client, node_id)
        kind = _likely_kind(about)
        known = [kind.id_of(one) for one in kind.listed(client, Filters(is_all=True))]
        if kind is BUNDLES:
            known += [POOLS.id_of(one) for one in client.pools()]
        raise nothing_of(kind.noun, about, known) from error


def _likely_kind(about: str) -> Kind[Any]:
    if "/" in about:
        return REPLICAS
    return _KIND_BY_PREFIX.get(about[:2], BUNDLES)


def explained(view: ExplainView) -> Iterator[str]:
    """Explain one thing."""
    yield f"{view.kind} {view.about} is {view.phase}"
    if view.summary:
        yield view.summary
    now = now_ms()
    if view.reasons:
        yield ""
        yield "Because:"
        for why in view.reasons:
            since = f"for {format_duration(max(0, now - why.since_at_ms))}, says {why.by}"
            yield from _reason(why.reason, why.detail, why.meaning, why.advice, since)
    if view.next_at_ms is not None:
        rest_ms = view.next_at_ms - now
        when = f"in {format_duration(rest_ms)}" if rest_ms > 0 else "now"
        yield f"Looked at again {when}, if nothing happens before."
    if view.commands:
        yield ""
        yield "Under way:"
        yield from (f"  {command}" for command in view.commands)
    if view.node_id is not None:
        yield ""
        yield from _checks(view, view.node_id)
    if view.decisions:
        yield ""
        yield from _decision(view.decisions[-1], now)
        earlier = len(view.decisions) - 1
        if earlier:
            yield f"{earlier} earlier decision{'s' if earlier > 1 else ''}: -o json shows them."


def _decision(decision: DecisionView, now: int) -> Iterator[str]:
    why = "recovery" if decision.is_recovery else "placement"
    where = f" on {decision.node_id}" if decision.node_id else ""
    rule = f" ({decision.rule})" if decision.rule else ""
    yield f"Last {why} decision, {age(decision.at_ms, now)} ago: {decision.outcome}{where}{rule}"
    if decision.degraded_by:
        yield f"  degraded by {', '.join(decision.degraded_by)}"
    for victim in decision.victims:
        primary = ", a primary" if victim.is_primary else ""
        ran = format_duration(victim.age_ms)
        yield f"  {victim.replica_id} ({victim.band}{primary}, ran for {ran}) gives way to it"
    for attempt in decision.attempts:
        yield from _attempt(attempt)


def _attempt(attempt: AttemptView) -> Iterator[str]:
    yield (
        f"  {attempt.pool}/{attempt.tier}: {attempt.outcome};"
        f" {attempt.candidate_count} looked at, {attempt.scored_count} would do"
    )
    for rank, candidate in enumerate(attempt.scored[:SHOWN_COUNT], start=1):
        yield f"    {candidate.node_id}  would do, number {rank}"
    for one in attempt.filtered[:SHOWN_COUNT]:
        yield f"    {one.node_id}  {_why(one.reason, one.detail)}"
    rest = attempt.filtered_count - len(attempt.filtered[:SHOWN_COUNT])
    if rest > 0:
        told = ", ".join(
            f"{count} {reason}" for reason, count in attempt.filtered_by_reason.items()
        )
        yield f"    and {rest} more; in all: {told}"


def _why(reason: str, detail: str) -> str:
    return f"{reason}: {detail}" if detail else reason


def _checks(view: ExplainView, node_id: str) -> Iterator[str]:
    if not view.checks:
        yield f"Nothing keeps {view.about} from {node_id} now."
    else:
        yield f"From {node_id} it is kept by:"
        for check in view.checks:
            yield from _reason(check.reason, check.detail, check.meaning, check.advice)


def _reason(reason: str, detail: str, meaning: str, advice: str, since: str = "") -> Iterator[str]:
    """Write a reason: its name and values, what it means, and what a person can do."""
    yield f"  {_why(reason, detail)}" + (f" ({since})" if since else "")
    if meaning:
        yield f"    {meaning}"
    if advice:
        yield f"    {advice}"
