"""What `hostler explain` says: a sentence, the reasons, what comes next, the last decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from hostler.base.units import format_duration
from hostler.cli.descriptions import note_line
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


def fetch(client: SyncClient, about: str) -> ExplainView:
    """Ask why something is as it is.

    Raises:
        CommandError: There is nothing of that id; the message names near ones.
    """
    try:
        return client.explain(about)
    except ClientError as error:
        if error.status != 404:
            raise
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
        for note in view.reasons:
            yield f"  {note_line(note)}, for {format_duration(max(0, now - note.since_at_ms))}"
    if view.next_at_ms is not None:
        rest_ms = view.next_at_ms - now
        when = f"in {format_duration(rest_ms)}" if rest_ms > 0 else "now"
        yield f"Looked at again {when}, if nothing happens before."
    if view.commands:
        yield ""
        yield "Under way:"
        yield from (f"  {command}" for command in view.commands)
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
    for attempt in decision.attempts:
        yield from _attempt(attempt)


def _attempt(attempt: AttemptView) -> Iterator[str]:
    yield (
        f"  {attempt.pool}/{attempt.tier}: {attempt.outcome};"
        f" {attempt.candidate_count} looked at, {attempt.scored_count} would do"
    )
    for candidate in attempt.scored[:SHOWN_COUNT]:
        yield f"    {candidate.node_id}  would do, score {_score(candidate.score)}"
    for one in attempt.filtered[:SHOWN_COUNT]:
        yield f"    {one.node_id}  {_why(one.reason, one.detail)}"
    rest = attempt.filtered_count - len(attempt.filtered[:SHOWN_COUNT])
    if rest > 0:
        told = ", ".join(
            f"{count} {reason}" for reason, count in attempt.filtered_by_reason.items()
        )
        yield f"    and {rest} more; in all: {told}"


def _score(score: list[int]) -> str:
    return ".".join(map(str, score))


def _why(reason: str, detail: str) -> str:
    return f"{reason}: {detail}" if detail else reason


def explained_for_node(view: ExplainView, node_id: str) -> Iterator[str]:
    """Explain what the last decision thought of one node."""
    if not view.decisions:
        yield f"no placement decision is remembered for {view.kind} {view.about}"
        return
    decision = view.decisions[-1]
    when = f"{age(decision.at_ms, now_ms())} ago"
    if decision.node_id == node_id:
        yield f"{view.about} was put on {node_id}, {when}: {decision.rule or decision.outcome}"
        return
    for attempt in decision.attempts:
        place = f"{attempt.pool}/{attempt.tier}"
        for one in attempt.filtered:
            if one.node_id == node_id:
                yield f"{node_id} ({place}) was refused, {when}: {_why(one.reason, one.detail)}"
                return
        for candidate in attempt.scored:
            if candidate.node_id == node_id:
                best = attempt.scored[0]
                yield (
                    f"{node_id} ({place}) would have done, {when}, with score"
                    f" {_score(candidate.score)}; {best.node_id} had {_score(best.score)},"
                    " and the lowest wins"
                )
                return
    looked_at = ", ".join(f"{one.pool}/{one.tier}" for one in decision.attempts) or "nothing"
    yield (
        f"{node_id} is not among the nodes that the decision {when} kept a word about;"
        f" it looked at {looked_at}"
    )
