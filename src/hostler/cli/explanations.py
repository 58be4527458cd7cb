"""What `hostler explain ID` says: a sentence, the reasons, what comes next, the last decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from hostler.base.units import format_duration
from hostler.cli.kinds import ALLOCATIONS, BUNDLES, LEASES, NODES, POOLS, REPLICAS, Filters, Kind
from hostler.cli.kinds import not_found as nothing_of
from hostler.cli.output import Column, age, table
from hostler.cli.remote import now_ms
from hostler.client import ClientError
from hostler.wire.http import AttemptView, CandidateView, DecisionView, ExplainView, RerunView

if TYPE_CHECKING:
    from hostler.client import SyncClient

SHOWN_COUNT: Final = 5
"""Nodes shown of each list of an attempt; `-o json` has all that the server keeps."""

_KIND_BY_PREFIX: Final[dict[str, Kind[Any]]] = {"n-": NODES, "a-": ALLOCATIONS, "l-": LEASES}


def fetch(client: SyncClient, about: str, node_id: str | None, **asked: Any) -> ExplainView:
    """Ask why something is as it is, all about a node if one is named, and about the past.

    Raises:
        CommandError: There is nothing of that id; the message names near ones.
    """
    try:
        return client.explain(about, node=node_id, **asked)
    except ClientError as error:
        is_past = asked.get("at_event") is not None or asked.get("at_revision") is not None
        if error.status != 404 or is_past:
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
            by = "" if why.by == "record" else f", says {why.by}"
            since = f"for {format_duration(max(0, now - why.since_at_ms))}{by}"
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
        yield from _fit(view, view.node_id)
    if view.rerun is not None:
        yield ""
        yield from _rerun(view.rerun, now)
    elif view.decisions:
        yield ""
        last = view.decisions[-1]
        what = "recovery" if last.is_recovery else "placement"
        told = f"Last {what} decision, {age(last.at_ms, now)} ago, at rev:{last.revision}"
        yield from _decision(told, last)
        earlier = len(view.decisions) - 1
        if earlier:
            yield f"{earlier} earlier decision{'s' if earlier > 1 else ''}: -o json shows them."


def _rerun(rerun: RerunView, now: int) -> Iterator[str]:
    """Tell a decision that was made again, and how it comes out with other facts."""
    if rerun.is_reproduced is None:
        told = "Decided now, as if it had no place"
    else:
        seqs = (rerun.first_event_seq or 0, rerun.last_event_seq or 0)
        events = f", events {seqs[0]} to {seqs[1]}" if seqs[0] <= seqs[1] else ""
        yield f"Revision {rerun.revision}{events}, {age(rerun.at_ms, now)} ago, run again: " + (
            "it came out the same, byte for byte."
            if rerun.is_reproduced
            else "it came out differently, so another version of Hostler made it."
        )
        told = "Decided then"
    if rerun.decision is None:
        yield "That step decided nothing about this replica."
    else:
        yield from _decision(told, rerun.decision)
    if rerun.given:
        yield ""
        facts = " and ".join(rerun.given)
        if rerun.altered is None:
            yield f"With {facts}: nothing would be decided about this replica."
        else:
            yield from _decision(f"With {facts}", rerun.altered)


def _decision(told: str, decision: DecisionView) -> Iterator[str]:
    where = f" on {decision.node_id}" if decision.node_id else ""
    machine = f" (a new {decision.offer})" if decision.offer else ""
    why = decision.rule or decision.reason
    yield f"{told}: {decision.outcome}{where}{machine}{f' ({why})' if why else ''}"
    for kind, ids in decision.devices.items():
        yield f"  with {kind} {', '.join(ids)}"
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
    yield from _scores(attempt.scored[:SHOWN_COUNT])
    for one in attempt.filtered[:SHOWN_COUNT]:
        yield f"    {one.node_id}  {_why(one.reason, one.detail)}"
    rest = attempt.filtered_count - len(attempt.filtered[:SHOWN_COUNT])
    if rest > 0:
        told = ", ".join(
            f"{count} {reason}" for reason, count in attempt.filtered_by_reason.items()
        )
        yield f"    and {rest} more; in all: {told}"


def _scores(candidates: Sequence[CandidateView]) -> Iterator[str]:
    """Lay the best nodes out, with the parts of the score in which they differ, lower first."""
    if not candidates:
        return
    parts = [part for part in candidates[0].score if len({c.score[part] for c in candidates}) > 1]
    columns = [
        Column[CandidateView]("BEST FIRST", lambda one: one.node_id),
        *(Column[CandidateView](part, _part(part)) for part in parts),
    ]
    yield from (f"    {line}" for line in table(candidates, columns, now_ms=0))


def _part(part: str) -> Callable[[CandidateView], int]:
    return lambda one: one.score[part]


def _why(reason: str, detail: str) -> str:
    return f"{reason}: {detail}" if detail else reason


def _fit(view: ExplainView, node_id: str) -> Iterator[str]:
    if not view.checks:
        yield f"Nothing keeps {view.about} from {node_id}."
        if view.comparison is not None:
            yield view.comparison.text
        return
    yield f"From {node_id} it is kept by:"
    for check in view.checks:
        yield from _reason(check.reason, check.detail, check.meaning, check.advice)
    yield ""
    if not view.ways:
        yield "No small change would make it do."
        return
    yield "It would do after " + ("this:" if len(view.ways) == 1 else "any one of these:")
    for way in view.ways:
        yield f"  {', and '.join(change.text for change in way.changes)}"
        for change in way.changes:
            if change.until_at_ms is not None:
                rest_ms = max(0, change.until_at_ms - now_ms())
                yield f"    which is so in {format_duration(rest_ms)}, whatever happens"
        yield f"    (see what follows: --if {' --if '.join(c.alteration for c in way.changes)})"


def _reason(reason: str, detail: str, meaning: str, advice: str, since: str = "") -> Iterator[str]:
    """Write a reason: its name and values, what it means, and what a person can do."""
    yield f"  {_why(reason, detail)}" + (f" ({since})" if since else "")
    if meaning:
        yield f"    {meaning}"
    if advice:
        yield f"    {advice}"
