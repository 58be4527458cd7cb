"""Trials of trials/placement.md 8.12, B100 and B101: limits and offers change under way."""

from collections.abc import Callable
from typing import Any

import pytest

from hostler.core import invariants
from hostler.core.inputs import CordonNode
from hostler.model import Pool
from hostler.model.command import LaunchMachine
from hostler.model.node import NodePhase
from hostler.testing.builders import a_job, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable

BOOT_MS = 120_000


def elastic(**changes: Any) -> Pool:
    """Return a pool of four warm machines, changed so."""
    tier = {key: changes.pop(key) for key in ("options_json", "node_count_max") if key in changes}
    given = {"tiers": (an_elastic_tier(**tier),), "warm_count": 2, "idle_ms": 1_000}
    return a_pool(**{**given, **changes})


@pytest.mark.parametrize("held", [False, True], ids=["warm", "reserved"])
def test_b100_a_launch_that_fails_is_not_tried_again_as_it_was_configured_before(
    stable: NewStable, held: bool
) -> None:
    """B100: a launch begun under a bad configuration: planned anew once that is mended."""
    world = stable(elastic(warm_count=0 if held else 1, options_json='{"image":"bad"}'))
    if held:
        world.place()
    world.fail("n-000001/launch/1", "unreachable")
    assert world.commands("launch_machine") == ["n-000001/launch/1"]
    world.configure(elastic(warm_count=0 if held else 1, options_json='{"image":"good"}'))
    assert world.node("n-000001").phase is NodePhase.RETIRED
    world.advance(world.now_ms + BOOT_MS)
    launches = [world.fleet.commands[each].command for each in world.commands("launch_machine")]
    assert launches
    for each in launches:
        assert isinstance(each, LaunchMachine)
        assert each.options_json == '{"image":"good"}'
    if held:
        again = world.allocation_of("b/main/0")
        assert again is not None
        assert again.node_id != "n-000001"


def requested(world: Stable) -> None:
    """Leave the machines asked for."""


def starting(world: Stable) -> None:
    """Let them boot."""
    world.launch()


def idle(world: Stable) -> None:
    """Let them stand idle."""
    world.boot()


def leased(world: Stable) -> None:
    """Let two be held by leases."""
    idle(world)
    for _ in range(2):
        world.acquire(timeout_ms=BOOT_MS)


def placed(world: Stable) -> None:
    """Let jobs run on them."""
    idle(world)
    for name in ("a", "b"):
        world.run_allocation(world.place(name, a_job(capacity=4)))


def cordoned(world: Stable) -> None:
    """Let them be closed."""
    idle(world)
    for node in list(world.fleet.nodes.in_order()):
        world.ask(CordonNode, node_id=node.node_id, reason="r")


def stopping(world: Stable) -> None:
    """Let them be on their way out."""
    idle(world)
    world.configure(elastic(warm_count=0))
    world.advance(world.now_ms + 1_000)


STATES = (requested, starting, idle, leased, placed, cordoned, stopping)
LIMITS: tuple[dict[str, Any], ...] = (
    {"node_count_max": 1, "warm_count": 1},
    {"tiers": (an_elastic_tier(node_count_max=1),), "warm_count": 1},
    {"warm_count": 0},
    {"node_count_min": 0, "warm_count": 0, "launch_count_max": 1},
    {"slot_count": 1},
    {"lease_per_key_max": 1},
    {"waiting_count_max": 1},
    {"use_count_max": 1},
    {"boot_failure_count_max": 1},
    {"lease_ms_max": 60_000},
    {"age_ms_max": 10 * BOOT_MS},
    {"retire_notice_ms": 0},
    {"is_enabled": False},
)


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@pytest.mark.parametrize("lowered", LIMITS, ids="-".join)
def test_b101_every_limit_may_be_lowered_in_every_state_of_a_machine(
    stable: NewStable, state: Callable[[Stable], None], lowered: dict[str, Any]
) -> None:
    """B101: each pair of state and change has a legal next state, and comes to rest."""
    world = stable(elastic(slot_count=2))
    state(world)
    world.configure(elastic(**{"slot_count": 2, **lowered}))
    invariants.check_all(world.fleet)
    for _ in range(4):
        world.boot()
        world.bury()
        world.advance(world.now_ms + 2 * BOOT_MS)
        invariants.check_all(world.fleet)
    pool = world.fleet.pools["p"]
    there = [node for node in world.fleet.nodes.in_order() if node.phase is not NodePhase.RETIRED]
    unheld = [node for node in there if not node.is_held and node.cordon is None]
    assert len(unheld) <= max(pool.warm_count, 0) if pool.is_enabled else not unheld
