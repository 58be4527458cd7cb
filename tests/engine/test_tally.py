"""The tally: counts that come out even, whatever becomes of a place. spec/placement.md 6.14."""

from collections import Counter
from typing import Any

import pytest

from hostler.core.fleet import Fleet
from hostler.engine.tally import Histogram, Tally
from hostler.model.shape import Shape
from hostler.testing.builders import a_job
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.conftest import stable as stable  # noqa: PLC0414  # a fixture, used by name
from tests.core.nodes.stable import Stable, an_own_node, an_own_pool


class Counted:
    """A world with a tally beside it."""

    def __init__(self, world: Stable) -> None:
        self.world = world
        self.tally = Tally()
        self.tally.begin(Fleet())
        self._seen = 0
        for node in world.fleet.nodes.rows.values():
            self.tally._capacity_of(node, 1)

    def outcomes(self) -> Counter[str]:
        """Count what happened since, and return placements by outcome."""
        for delta in self.world.deltas[self._seen :]:
            self.tally.count(self.world.fleet, delta)
        self._seen = len(self.world.deltas)
        total: Counter[str] = Counter()
        for (_, _, outcome), count in self.tally.placements.items():
            total[outcome] += count
        return total


def test_s_169_attempts_are_the_sum_of_their_outcomes(stable: NewStable) -> None:
    """S-169: 10 placements with 6 started, 2 engine failures, 2 refused dispatches: 10 = 6+2+2."""
    world = stable(an_own_pool(), an_own_node(shape=Shape(capacity=100)))
    counted = Counted(world)
    for number in range(8):
        allocation = world.place(f"b{number}")
        if number < 6:
            world.run_allocation(allocation)
        else:
            world.fail(f"{allocation.allocation_id}/start/{allocation.epoch}", "refused", "no")
    for number in range(2):
        world.submit(f"c{number}", a_job(capacity=500))
    found = counted.outcomes()
    live = [each for each in world.fleet.allocations.rows.values() if each.is_live]
    unsettled = sum(each.phase.value in ("reserved", "starting") for each in live)
    # What was refused is looked at again, and finds no place: two attempts more.
    assert (found["started"], found["no_place"], found["start_failed"]) == (6, 4, 2)
    assert found["attempted"] == 12
    settled = sum(found[name] for name in ("started", "no_place", "start_failed", "withdrawn"))
    assert found["attempted"] == settled + unsettled


@pytest.mark.parametrize("is_lost", [False, True])
def test_s_170_the_used_part_is_weighted_by_capacity(stable: NewStable, is_lost: bool) -> None:
    """S-170: nodes of 10 and 30 with bound 5 and 3, then the used fraction is 0.2 (8 of 40)."""
    world = stable(
        an_own_pool(),
        an_own_node("n-900001", shape=Shape(capacity=10)),
        an_own_node("n-900002", shape=Shape(capacity=30), labels={"big": "yes"}),
    )
    counted = Counted(world)
    for name, capacity in (("a", 5), ("b", 3)):
        world.run_allocation(world.place(name, a_job(capacity=capacity)))
    counted.outcomes()
    assert counted.tally.capacity == {"p": [40, 8]}
    if is_lost:
        world.ask_to_delete("a")
        for command_id in world.commands("stop_allocation"):
            world.succeed(command_id)
        counted.outcomes()
        assert counted.tally.capacity["p"][0] == 40


def test_a_histogram_counts_by_bounds() -> None:
    histogram = Histogram((10, 100))
    for took in (1, 10, 11, 100, 5_000):
        histogram.add(took)
    assert (histogram.counts, histogram.total) == ([2, 2, 1], 5_122)


def test_recoveries_are_timed_from_the_failure_to_ready(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node(), an_own_node("n-900002"))
    counted = Counted(world)
    allocation = world.run_allocation(world.place("b"))
    failed: dict[str, Any] = {"ended": None}
    world.report(allocation, "ended", **failed)
    began_at_ms = world.now_ms
    world.advance(world.now_ms + 60_000)
    again = world.allocation_of("b/main/0") or world.allocation_of(allocation.replica_id)
    assert again is not None
    world.run_allocation(again)
    counted.outcomes()
    (recovered,) = counted.tally.recovered.by_labels.values()
    assert (sum(recovered.counts), recovered.total) == (1, world.now_ms - began_at_ms)
    assert counted.tally.recoveries == {"supervisor_lost": 1}
