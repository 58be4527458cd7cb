"""Any settings that pass the check come to rest: nothing is bought to be let go (G-27)."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hostler.core.inputs import ReleaseLease
from hostler.core.replies import Accepted
from hostler.engine.time_zones import read_time_zones
from hostler.model.calendar import Weekday, Window
from hostler.model.node import NodePhase
from hostler.model.pool import Pool, Rollout, SizeWindow
from hostler.testing.builders import a_fixed_tier, a_pool, an_elastic_tier
from tests.core.nodes.stable import Stable

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
BERLIN = read_time_zones(["Europe/Berlin"], 1_780_000_000_000)[0]
NOON_MS = 1_780_308_000_000
"""12:00 in Berlin on 2026-06-01."""


def a_window(name: str, from_hour: int, to_hour: int, **sizes: Any) -> SizeWindow:
    window = Window(
        time_zone="Europe/Berlin",
        days=tuple(Weekday),
        from_ms=from_hour * HOUR_MS,
        to_ms=to_hour * HOUR_MS,
    )
    return SizeWindow(name=name, window=window, **sizes)


def any_pool(draw: Any) -> Pool:
    """Draw a pool; whether it passes the check is for the check to say."""
    counts = st.integers(0, 3)
    maybe = st.sampled_from([None, 0, 1, 3])
    windows = [
        a_window(name, *hours, warm_count=draw(maybe), node_count_min=draw(maybe))
        for name, hours in (("night", (22, 6)), ("day", (8, 20)), ("noon", (11, 21)))
        if draw(st.booleans())
    ]
    tiers = [
        an_elastic_tier(
            node_count_max=draw(st.integers(1, 5)),
            boot_ms=2 * MINUTE_MS,
            options_json=draw(st.sampled_from(["{}", '{"image":"new"}'])),
        )
    ]
    if draw(st.booleans()):
        tiers.append(a_fixed_tier(node_count_max=2))
    return a_pool(
        tiers=tuple(tiers),
        windows=tuple(windows),
        warm_count=draw(counts),
        node_count_min=draw(counts),
        node_count_max=draw(st.sampled_from([None, 1, 2, 4])),
        spare_count=draw(st.integers(0, 1)),
        slot_count=draw(st.integers(1, 2)),
        idle_ms=draw(st.sampled_from([0, MINUTE_MS, 20 * MINUTE_MS])),
        age_ms_max=draw(st.sampled_from([None, None, 10 * MINUTE_MS, HOUR_MS])),
        use_count_max=draw(st.sampled_from([None, 1])),
        launch_count_max=draw(st.integers(1, 3)),
        rollout=Rollout(
            surge_count_max=draw(st.integers(0, 2)), unavailable_count_max=draw(st.integers(0, 2))
        ),
    )


def live(world: Stable, for_ms: int) -> int:
    """Let machines come and go as they are asked to; return how many were asked for."""
    before = len(world.deltas)
    until_ms = world.now_ms + for_ms
    while world.now_ms < until_ms:
        world.boot()
        world.bury()
        world.advance(world.now_ms + MINUTE_MS)
    kinds = [each.kind.value for delta in world.deltas[before:] for each in delta.events]
    return kinds.count("node_requested") + kinds.count("node_stopping")


@pytest.mark.slow
@settings(max_examples=25)
@given(data=st.data())
def test_after_a_quiet_time_nothing_is_launched_or_ended_any_more(data: st.DataObject) -> None:
    """Minimum, warm, maximum, windows, age, rollout, idle, uses: whatever passes the check."""
    world = Stable(BERLIN, now_ms=NOON_MS)
    for _ in range(data.draw(st.integers(1, 3))):
        answer = world.configure(any_pool(data.draw), time_zones=(BERLIN,))
        if isinstance(answer, Accepted) and data.draw(st.booleans()):
            lease = world.acquire(timeout_ms=10 * MINUTE_MS)
            live(world, 2 * MINUTE_MS)
            if world.fleet.leases[lease.lease_id].node_id is not None:
                world.ask(ReleaseLease, lease_id=lease.lease_id)
    assume("p" in world.fleet.pools)
    pool = world.fleet.pools["p"]
    live(world, 90 * MINUTE_MS)
    moved_count = live(world, HOUR_MS)
    staying_count = world.fleet.index.nodes_by_pool.count("p")
    if pool.age_ms_max is None:
        assert moved_count == 0
    else:
        # Each is replaced once an age, at nine tenths of it at the earliest and a boot before that.
        lives = -(-HOUR_MS * 10 // (9 * pool.age_ms_max - 10 * 2 * MINUTE_MS)) + 1
        assert moved_count <= 2 * lives * (staying_count + 1)
    assert not world.in_phase(NodePhase.REQUESTED) or pool.age_ms_max is not None
