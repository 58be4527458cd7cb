"""Walk: over pools and tiers in their order, to the best place for one replica.

In each tier existing nodes come before a new machine, and a tier's new machine before the next
tier: tiers are in cost order. Where a pool says so, the nodes of all its tiers come before any new
machine. The next pool is open when this one is full or, where the bundle says so, only when this
one could take nobody. A place that keeps every rule wins at once; places that break a
preferred rule are remembered, and the best of them wins when no tier has anything better
(spec/placement.md C-010 to C-018, C-076). Nodes on which the replica lately failed are looked at
once more, when nothing else is there at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from hostler.core.placement.buy import (
    Wanted,
    by_price,
    fitting_offers,
    preferences_broken,
    tier_refusal,
)
from hostler.core.placement.demand import Demand, SpareAccess
from hostler.core.placement.feasible import PARTICULAR, STANDINGS, Place, refusals
from hostler.core.placement.resilience import INTERRUPTIBLE_PRIMARY, domains_of_new
from hostler.core.placement.survey import Survey, survey_of
from hostler.core.placement.trace import attempt_of
from hostler.model import Pool
from hostler.model.bundle import Fallback
from hostler.model.pool import Offer, Reliability, Reuse, Tier
from hostler.model.reason import Reason
from hostler.model.trace import Attempt

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet

Obstacle = Callable[[Pool, Tier, Offer], Reason | None]
"""Says why a machine of an offer may not be asked for now, or `None` when it may."""

Crowd = Callable[[Demand, Pool], Sequence[Wanted]]
"""Tells who else waits for a machine of a pool; the demand itself comes first."""

EXHAUSTED: Final = "exhausted"
"""Outcome of a look at a fixed tier in which no node fits."""

RULE_SPARE: Final = "a gold recovery takes a spare first"
RULE_EXISTING: Final = "best fit in the first tier that has room"
RULE_NEW: Final = "machine that serves those who wait at the least price, in the first such tier"
RULE_DEGRADED: Final = "every place breaks a preferred rule; this one breaks fewest"
RULE_TOGETHER: Final = "a place that leaves one for all of its gang"
RULE_AGAIN: Final = "no other place fits than where it failed"

WAITS: Final = (
    Reason.LAUNCHES_IN_FLIGHT,
    Reason.LAUNCH_RATE,
    Reason.PROVIDER_PAUSED,
    Reason.OFFER_COOLING_DOWN,
    Reason.GROWTH_STOPPED,
    Reason.BUDGET_IN_USE,
    Reason.BUDGET_SPENT,
    Reason.LIMIT_REACHED,
    Reason.EXCLUDED_RECENT_FAILURE,
    Reason.SPREAD_NODE,
    Reason.SPREAD_ZONE,
    Reason.SPREAD_TIER,
    Reason.SPREAD_PROVIDER,
    Reason.SPREAD_LABEL,
    Reason.FAILURE_DOMAIN,
    Reason.AFFINITY,
    Reason.ANTI_AFFINITY,
    Reason.COLOCATION,
    Reason.RELIABILITY,
    Reason.NO_CAPACITY,
    Reason.NO_OFFER_FITS,
    Reason.NODE_LABELS,
    Reason.NODE_EXCLUDED,
    Reason.OFFER_NOT_ALLOWED,
    Reason.POOL_DISABLED,
    Reason.POOL_NOT_CONFIGURED,
)
"""What a replica is said to wait for, when there are several: the one that may pass soonest."""


_UNAVAILABLE: Final = (Reason.NO_CAPACITY, Reason.OFFER_COOLING_DOWN)
"""Why a tier has no new machine, when nothing but its nodes could take anybody."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A place that could be taken: a node, or a machine to launch."""

    pool: Pool
    tier: Tier
    place: Place | None = None
    offer: Offer | None = None
    """Given when there is no node yet."""
    degraded_by: tuple[str, ...] = ()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came out for one replica."""

    option: Option | None = None
    rule: str = ""
    reason: Reason | None = None
    """Why there is none."""
    detail: str = ""
    """The same in words; left out, the attempts tell."""
    attempts: tuple[Attempt, ...] = ()
    is_particular: bool = False
    """True: it failed for something that another replica with the same demand may not share."""


class _Found(msgspec.Struct, frozen=True):
    """The best of one kind in a tier."""

    broken_count: int
    """Preferred rules that it breaks."""
    option: Option


class _Look(msgspec.Struct):
    """One look at one tier, with what was found there."""

    demand: Demand
    pool: str
    tier: str = ""
    survey: Survey | None = None
    """What was found among its nodes; `None` when the tier was not looked at."""
    existing: _Found | None = None
    new: _Found | None = None
    reason: Reason | None = None
    """Why the tier has no new machine."""
    outcome: str = EXHAUSTED

    def attempt(self) -> Attempt:
        return attempt_of(
            self.pool,
            self.tier,
            survey=self.survey,
            outcome=self.outcome,
        )


def decide(
    demand: Demand, fleet: Fleet, obstacle: Obstacle, crowd: Crowd = lambda _demand, _pool: ()
) -> Verdict:
    """Return the place for one replica, or why there is none; with every look that led there."""
    if demand.spares is SpareAccess.FIRST:
        verdict = _spare_anywhere(demand, fleet)
        if verdict is not None:
            return verdict
    verdict = _walk(demand, fleet, obstacle, crowd, RULE_EXISTING)
    if verdict.option is not None or not demand.avoided:
        return verdict
    again = msgspec.structs.replace(demand, avoided=frozenset())
    second = _walk(again, fleet, obstacle, crowd, RULE_AGAIN)
    if second.option is None:
        return verdict
    return msgspec.structs.replace(second, attempts=(*verdict.attempts, *second.attempts))


def _walk(demand: Demand, fleet: Fleet, obstacle: Obstacle, crowd: Crowd, rule: str) -> Verdict:
    looks: list[_Look] = []
    for stage in _stages(demand, fleet, obstacle, crowd):
        looks += stage
        for kind, said in ((_existing, rule), (_new, RULE_NEW)):
            for look in stage:
                found = kind(look)
                if found is not None and found.broken_count == 0:
                    return _taken(look, found, said, looks)
    for kind in (_existing, _new):
        degraded = [(look, found) for look in looks if (found := kind(look)) is not None]
        if demand.broken_count_max is not None:
            degraded = [
                each for each in degraded if each[1].broken_count <= demand.broken_count_max
            ]
        if degraded:
            best = min(degraded, key=lambda each: each[1].broken_count)
            return _taken(*best, RULE_DEGRADED, looks)
    return _failure(looks)


def alternatives(demand: Demand, fleet: Fleet, obstacle: Obstacle) -> Iterator[Verdict]:
    """Give the places that a replica could have, the best first, up to a few a tier."""
    looks: list[_Look] = []
    for stage in _stages(demand, fleet, obstacle, lambda _demand, _pool: ()):
        looks += stage
    attempts = _attempts(looks)
    found = [each for look in looks for each in _places_of(look, fleet)]
    for option in sorted(found, key=lambda each: each.broken_count):
        yield Verdict(option=option.option, rule=RULE_TOGETHER, attempts=attempts)


def _places_of(look: _Look, fleet: Fleet) -> Iterator[_Found]:
    pool = fleet.pools.get(look.pool)
    tier = None if pool is None else pool.tier(look.tier)
    if pool is None or tier is None:
        return
    for best in () if look.survey is None else look.survey.ranked:
        told = degraded_by(look.demand, best.broken, best.place.node.reliability)
        option = Option(pool=pool, tier=tier, place=best.place, degraded_by=told)
        yield _Found(len(best.broken), option)
    if look.new is not None:
        yield look.new


def _existing(look: _Look) -> _Found | None:
    return look.existing


def _new(look: _Look) -> _Found | None:
    return look.new


def _taken(look: _Look, found: _Found, rule: str, looks: list[_Look]) -> Verdict:
    look.outcome = "launched" if found.option.place is None else "placed"
    return Verdict(option=found.option, rule=rule, attempts=_attempts(looks))


def _attempts(looks: list[_Look]) -> tuple[Attempt, ...]:
    return tuple(look.attempt() for look in looks)


def _stages(
    demand: Demand, fleet: Fleet, obstacle: Obstacle, crowd: Crowd
) -> Iterator[list[_Look]]:
    """Give the tiers whose nodes are looked for together; the next only when somebody asks."""
    for name in demand.pools:
        pool = fleet.pools.get(name)
        if pool is None or not pool.is_enabled:
            reason = Reason.POOL_NOT_CONFIGURED if pool is None else Reason.POOL_DISABLED
            yield [_Look(demand, name, reason=reason, outcome=reason.value)]
            continue
        looks: list[_Look] = []
        for tier in pool.tiers:
            look = _look_at(demand, fleet, pool, tier)
            _look_for_new(look, pool, tier, obstacle, crowd)
            looks.append(look)
            if pool.reuse is Reuse.TIER:
                yield [look]
        if pool.reuse is Reuse.POOL:
            yield looks
        if demand.fallback is Fallback.WHEN_UNAVAILABLE and any(map(_could_take, looks)):
            return


def _could_take(look: _Look) -> bool:
    """Say whether a tier takes work from anybody: it has nodes that do, or could have."""
    if look.new is not None or look.reason not in _UNAVAILABLE:
        return True
    survey = look.survey
    return survey is not None and survey.candidate_count > sum(
        survey.count_by_reason.get(reason, 0) for reason in STANDINGS
    )


def _look_at(demand: Demand, fleet: Fleet, pool: Pool, tier: Tier) -> _Look:
    survey = survey_of(demand, fleet, pool.name, tier.name)
    look = _Look(demand, pool.name, tier.name, survey=survey)
    if survey.ranked:
        best = survey.ranked[0]
        told = degraded_by(demand, best.broken, best.place.node.reliability)
        option = Option(pool=pool, tier=tier, place=best.place, degraded_by=told)
        look.existing = _Found(len(best.broken), option)
    return look


def _look_for_new(look: _Look, pool: Pool, tier: Tier, obstacle: Obstacle, crowd: Crowd) -> None:
    if look.existing is not None and look.existing.broken_count == 0:
        return
    demand = look.demand
    look.reason = tier_refusal(demand, pool, tier)
    if look.reason is not None:
        look.outcome = EXHAUSTED if look.reason is Reason.NO_CAPACITY else look.reason.value
        return
    offers = fitting_offers(demand, pool, tier)
    obstacles = [obstacle(pool, tier, offer) for offer in offers]
    free = [offer for offer, wait in zip(offers, obstacles, strict=True) if wait is None]
    if free:
        offer = free[0] if len(free) == 1 else by_price(free, crowd(demand, pool), tier)[0]
        broken = preferences_broken(demand, domains_of_new(pool, tier, offer))
        option = Option(
            pool=pool,
            tier=tier,
            offer=offer,
            degraded_by=degraded_by(demand, broken, tier.reliability_of(offer)),
        )
        look.new = _Found(len(broken), option)
        return
    waits = [reason for reason in obstacles if reason is not None]
    look.reason = min(waits, key=_rank) if waits else Reason.NO_OFFER_FITS
    look.outcome = look.reason.value


def _spare_anywhere(demand: Demand, fleet: Fleet) -> Verdict | None:
    """Return the best spare of the first tier that has one which keeps every rule."""
    for name in demand.pools:
        pool = fleet.pools.get(name)
        if pool is None or not pool.is_enabled:
            continue
        for tier in pool.tiers:
            look = _look_at(demand, fleet, pool, tier)
            found = look.existing
            if found is None or found.broken_count != 0 or found.option.place is None:
                continue
            if found.option.place.node.is_spare:
                return _taken(look, found, RULE_SPARE, [look])
    return None


def degraded_by(
    demand: Demand, broken: tuple[Reason, ...], reliability: Reliability
) -> tuple[str, ...]:
    """Return what an allocation there is said to be degraded by."""
    told = tuple(dict.fromkeys(reason.value for reason in broken))
    if demand.is_primary and reliability is Reliability.INTERRUPTIBLE:
        return (*told, INTERRUPTIBLE_PRIMARY)
    return told


def _failure(looks: list[_Look]) -> Verdict:
    told = [look.reason or Reason.NO_CAPACITY for look in looks]
    if _is_about_nodes(looks):
        told = [reason for reason in told if reason not in _WITHOUT_MEANING]
    is_particular = not PARTICULAR.isdisjoint(told)
    for look in looks:
        if look.survey is None:
            continue
        for reason in look.survey.count_by_reason:
            is_particular = is_particular or reason in PARTICULAR
            # A node says what is waited for only if nothing else stands in its way.
            if reason in WAITS and any(
                len(list(refusals(look.demand, place))) == 1
                for place in look.survey.refused_for(reason)
            ):
                told.append(reason)
    return Verdict(
        reason=min(told, key=_rank, default=Reason.NO_CAPACITY),
        attempts=_attempts(looks),
        is_particular=is_particular,
    )


def _is_about_nodes(looks: list[_Look]) -> bool:
    """Say whether there are nodes and all of them are of another kind than is asked for."""
    found = [
        look.survey for look in looks if look.survey is not None and look.survey.candidate_count
    ]
    return bool(found) and all(
        sum(survey.count_by_reason.get(reason, 0) for reason in _OTHER_KIND)
        == survey.candidate_count
        for survey in found
    )


_OTHER_KIND: Final = (Reason.NODE_LABELS, Reason.NODE_EXCLUDED, Reason.OFFER_NOT_ALLOWED)
_WITHOUT_MEANING: Final = (Reason.NO_CAPACITY, Reason.NO_OFFER_FITS)


def _rank(reason: Reason) -> int:
    return WAITS.index(reason)
