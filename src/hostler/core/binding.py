"""Binding plans: whether a plan that was made at one revision still says what would happen.

A decision depends on what is in the pools that a bundle may use, and on whom its rules are about.
If nothing of that has changed since, the plan stands whatever else did; and if it has, the plan
stands as long as planning anew gives the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from hostler.base.encoding import digest, encode
from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.core.inputs import SubmitBundle
from hostler.core.placement.feasible import standing_of
from hostler.core.planning import Outcome, Plan, plan
from hostler.core.replies import Problem, Refused
from hostler.model import Allocation, Bundle, Cooldown, Node, Pool, Replica, Settings
from hostler.model.record import Record

Gist = tuple[tuple[str, ...], ...]
"""What a plan says of each replica: its id, what would become of it, where, degraded by what."""


def gist_of(made: Plan) -> Gist:
    """Return what a plan binds to. A machine that does not exist yet is known by its offer."""
    return tuple(
        (
            one.replica_id,
            one.outcome.value,
            one.pool,
            one.tier,
            one.offer if one.outcome is Outcome.LAUNCHING else one.node_id or "",
            *one.degraded_by,
        )
        for one in made.replicas
    )


def plan_key(submission: SubmitBundle, revision: int) -> str:
    """Return the name under which a plan is remembered, whoever asked for it."""
    asked = replace(submission, request_id="", principal="", idempotency_key="", origin=None)
    return f"{revision}/{digest(encode(asked))}"


def stale(
    fleet: Fleet,
    submission: SubmitBundle,
    at: int,
    deltas: Sequence[Delta] | None,
    remembered: Gist | None,
    now_ms: int,
) -> Refused | None:
    """Return why a submission is not what was planned at a revision, or `None` when it is.

    Args:
        fleet: As it is, with no step open.
        submission: What is submitted.
        at: The revision of the plan.
        deltas: Every step since, oldest first; `None` when that is not known any more.
        remembered: What the plan said, if it is still known.
        now_ms: The instant.
    """
    if at == fleet.revision:
        return None
    if at > fleet.revision:
        told = f"there is no revision {at} yet; the fleet is at {fleet.revision}"
        return Refused(code="revision_unknown", message=told, is_conflict=True)
    problems = None if deltas is None else list(_changes(fleet, submission, deltas))
    if problems == []:
        return None
    if remembered is not None:
        now = gist_of(plan(fleet, submission, now_ms))
        if now == remembered:
            return None
        problems = [*_differences(remembered, now), *(problems or ())]
    if problems is None:
        told = f"revision {at} is too long ago to say what has changed since; plan again"
        return Refused(code="revision_too_old", message=told, is_conflict=True)
    message = f"since revision {at}: {problems[0].path} {problems[0].message}"
    return Refused(
        code="plan_stale",
        message=f"{message} ({len(problems)} differences); plan again",
        problems=tuple(problems[:_TOLD_MAX]),
        is_conflict=True,
    )


_TOLD_MAX = 50


def _differences(before: Gist, now: Gist) -> Iterator[Problem]:
    old, new = {one[0]: one for one in before}, {one[0]: one for one in now}
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            told = f"would be {_text(new.get(key))}, and was planned {_text(old.get(key))}"
            yield Problem(path=f"replica/{key}", code="plan_differs", message=told)


def _text(one: tuple[str, ...] | None) -> str:
    return "not there" if one is None else " ".join(part for part in one[1:] if part)


def _changes(fleet: Fleet, one: SubmitBundle, deltas: Sequence[Delta]) -> Iterator[Problem]:
    """Give what matters to a bundle and is different now."""
    before: dict[tuple[str, str], Record | None] = {}
    for delta in deltas:
        for name, record in delta.before.items():
            before.setdefault(name, record)
    for (kind, key), old in sorted(before.items(), key=lambda each: each[0]):
        new: Record | None = fleet.tables[kind].get(key)
        seen_old, seen_new = _seen(fleet, one, old), _seen(fleet, one, new)
        if seen_old != seen_new:
            code = "new" if seen_old is None else "gone" if seen_new is None else "changed"
            yield Problem(path=f"{kind}/{key}", code=code, message=_WORDS[code])


_WORDS = {"new": "is new", "gone": "is gone", "changed": "has changed"}


def _seen(fleet: Fleet, one: SubmitBundle, record: Record | None) -> object:
    """Return what a decision about a bundle sees of a record; `None` when it sees nothing."""
    pools = (one.pool, *one.fallback_pools)
    match record:
        case Settings() | Pool() if isinstance(record, Settings) or record.name in pools:
            return record
        case Cooldown() if record.key.partition("/")[0] in pools:
            return record.until_at_ms, record.is_over
        case Node() if record.pool in pools:
            return _seen_node(record)
        case Allocation() if record.is_live:
            node = fleet.nodes.get(record.node_id)
            is_ours = record.bundle_id == one.bundle_id or fleet.index.peers.has_wishes
            if is_ours or (node is not None and node.pool in pools):
                return record.node_id, record.requirement
        case Bundle() if record.bundle_id == one.bundle_id or fleet.index.peers.has_wishes:
            return replace(record, observed_generation=0)
        case Replica() if record.bundle_id == one.bundle_id:
            return record.phase, record.avoided, record.is_recovery
        case _:
            pass
    return None


def _seen_node(node: Node) -> tuple[object, ...]:
    return (
        standing_of(node),
        node.is_inventory_reported,
        node.shape,
        node.lease_count > 0,
        node.is_spare,
        node.spare_band,
        node.tier,
        node.zone,
        node.labels,
        node.reliability,
    )
