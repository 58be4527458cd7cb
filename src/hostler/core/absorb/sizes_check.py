"""What can be wrong with the sizes of a pool: floors, ceilings, windows, age and rollout together.

What passes here comes to rest: floors fit under ceilings, and no machine is so short-lived that it
is replaced before it is of use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hostler.core.replies import Problem
from hostler.model import Pool
from hostler.model.pool import SizeWindow, TierKind

AGE_IN_BOOTS_MIN = 4
"""A machine lives for at least so many times the longest boot: one to come, one to be replaced."""


def problems_of_sizes(at: str, pool: Pool, time_zones: Iterable[str]) -> Iterator[Problem]:
    """Yield every problem of one pool."""
    known = frozenset(time_zones)
    yield from _fits(at, pool, None)
    seen: set[str] = set()
    for number, each in enumerate(pool.windows):
        inside = f"{at}.windows[{number}]"
        if each.name in seen:
            yield Problem(
                path=f"{inside}.name",
                code="duplicate_name",
                message=f"{each.name!r} stands above already",
            )
        seen.add(each.name)
        yield from _window(inside, each, known)
        yield from _fits(inside, pool, each)
    yield from _age(at, pool)
    rollout = pool.rollout
    if min(rollout.surge_count_max, rollout.unavailable_count_max) < 0 or (
        rollout.surge_count_max + rollout.unavailable_count_max == 0
    ):
        yield Problem(
            path=f"{at}.rollout",
            code="never_replaces",
            message="surge and unavailable must be zero or more, and not both zero",
        )


def _window(at: str, each: SizeWindow, known: frozenset[str]) -> Iterator[Problem]:
    window = each.window
    if window.time_zone not in known:
        yield Problem(
            path=f"{at}.time_zone",
            code="unknown_time_zone",
            message=f"nothing is known of the time zone {window.time_zone!r}",
        )
    if not window.days or list(window.days) != sorted(set(window.days)):
        yield Problem(
            path=f"{at}.days",
            code="bad_days",
            message="name each day on which it begins, once and in the order of the week",
        )
    for name, ms in (("from_ms", window.from_ms), ("to_ms", window.to_ms)):
        if not 0 <= ms <= 86_400_000:
            yield Problem(path=f"{at}.{name}", code="bad_time", message="is no time of day")


def _fits(at: str, pool: Pool, each: SizeWindow | None) -> Iterator[Problem]:
    """What is to be there must fit into what may be, in the pool and in each of its windows."""
    warm, least, most = pool.warm_count, pool.node_count_min, pool.node_count_max
    if each is not None:
        warm = warm if each.warm_count is None else each.warm_count
        least = least if each.node_count_min is None else each.node_count_min
        most = most if each.node_count_max is None else each.node_count_max
    if least < 0 or warm < 0:
        yield Problem(path=at, code="too_small", message="warm and min must be zero or more")
    if most is not None and most < 1:
        yield Problem(path=f"{at}.node_count_max", code="too_small", message="must be 1 or more")
    ceilings = []
    if not any(tier.kind is TierKind.FIXED and tier.node_count_max == 0 for tier in pool.tiers):
        fixed = sum(t.node_count_max for t in pool.tiers if t.kind is TierKind.FIXED)
        elastic = sum(t.node_count_max for t in pool.tiers if t.kind is TierKind.ELASTIC)
        ceilings.append(("the machines that the tiers allow", fixed + elastic))
        if most is not None:
            ceilings.append(("the pool's maximum, with its fixed tiers,", fixed + most))
    for told, ceiling in ceilings if pool.tiers else []:
        for name, wanted in (
            ("warm_count", warm + pool.spare_count),
            ("node_count_min", least),
        ):
            if wanted > ceiling:
                yield Problem(
                    path=f"{at}.{name}",
                    code="more_than_maximum",
                    message=f"{wanted} are wanted, spares counted, and {told} are {ceiling}",
                )


def _age(at: str, pool: Pool) -> Iterator[Problem]:
    if pool.boot_failure_count_max < 1:
        yield Problem(
            path=f"{at}.boot_failure_count_max", code="too_small", message="must be 1 or more"
        )
    if pool.age_ms_max is None:
        return
    boot_ms = max((tier.boot_ms for tier in pool.tiers), default=0)
    if pool.age_ms_max < AGE_IN_BOOTS_MIN * boot_ms:
        yield Problem(
            path=f"{at}.age_ms_max",
            code="shorter_than_boots",
            message=f"must be at least {AGE_IN_BOOTS_MIN} times the longest boot ({boot_ms} ms),"
            " or machines are replaced before they are of use",
        )
