"""Shrinking: takes away from a failing scenario whatever the failure does not need.

The seed stays. Each part draws from streams of its own, so most of the history stays as it was when
another part is gone; what is left is a shorter story of the same bug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from hostler.sim import cloud, disk, machine, network
from hostler.sim.history import History
from hostler.sim.scenario import Phases, Scenario

SAFETY_MS_MIN = 30_000
"""No story is told in less."""


def shrink(scenario: Scenario, seed: int, tell: Callable[[str], None]) -> Scenario:
    """Return the smallest scenario found in which the seed breaks the same thing.

    Returns:
        The scenario as it was, when the seed breaks nothing.
    """
    broken = _broken(scenario, seed)
    is_smaller = broken != ""
    while is_smaller:
        is_smaller = False
        for what, smaller in _smaller(scenario):
            if _broken(smaller, seed) == broken:
                tell(f"without {what}: still {broken}")
                scenario, is_smaller = smaller, True
                break
    return scenario


def _broken(scenario: Scenario, seed: int) -> str:
    """Name what a seed breaks, without the ids that differ from story to story."""
    return History(scenario, seed).run().violation.partition(":")[0]


def _smaller(scenario: Scenario) -> Iterator[tuple[str, Scenario]]:
    """Give the scenarios with one thing less, the largest things first."""
    for workload in scenario.workload:
        rest = tuple(each for each in scenario.workload if each is not workload)
        yield type(workload).__name__, replace(scenario, workload=rest)
    for fault in scenario.fault:
        rest_of_faults = tuple(each for each in scenario.fault if each is not fault)
        yield type(fault).__name__, replace(scenario, fault=rest_of_faults)
    for name, calm in (
        ("network", network.CALM),
        ("cloud", cloud.CALM),
        ("disk", disk.CALM),
        ("machines", machine.CALM),
    ):
        if getattr(scenario, name) != calm:
            yield f"trouble of the {name}", replace(scenario, **{name: calm})
    for pool in scenario.fleet.pools[1:]:
        pools = tuple(each for each in scenario.fleet.pools if each is not pool)
        yield f"pool {pool.name}", replace(scenario, fleet=replace(scenario.fleet, pools=pools))
    phases: Phases = scenario.phases
    if phases.safety_ms // 2 >= SAFETY_MS_MIN:
        shorter = replace(phases, safety_ms=phases.safety_ms // 2)
        yield "half of the time", replace(scenario, phases=shorter)
