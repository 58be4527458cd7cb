"""A store that is a backup of another, whose server went on: no id is given out twice."""

from __future__ import annotations

from hostler.core.inputs import AcquireLease, ServerStarted
from hostler.core.replies import Accepted
from hostler.model import Counter, Pool
from hostler.model.node import NodePhase
from hostler.model.record import COPIED
from hostler.testing.builders import a_pool
from tests.core.mirror import reloaded
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, an_own_pool
from tests.core.nodes.test_listing import a_machine, orphans

MADE_AT_MS = 1_000_000
"""When a node was last named before the backup; more than a minute of numbers."""


def a_copy(stable: NewStable, pool: Pool | None = None) -> Stable:
    """Return a fleet that has named three nodes, and was copied then."""
    world = stable(pool or a_pool(), Counter(name="n", value=3))
    world.advance(MADE_AT_MS)
    world.fleet.counters.rows[COPIED] = Counter(name=COPIED, value=1)
    world.run(ServerStarted(version="1"))
    return world


def number_of(key: str) -> int:
    return int(key.rpartition("-")[2])


def test_what_is_named_after_a_restore_was_named_by_nobody_since_the_backup(
    stable: NewStable,
) -> None:
    world = a_copy(stable, an_own_pool())
    assert COPIED not in world.fleet.counters
    answer = world.join()
    assert isinstance(answer, Accepted)
    assert number_of(answer.subject_id) > MADE_AT_MS
    # Also of what the copy has never named before.
    lease = world.ask(AcquireLease, pool="p", timeout_ms=60_000)
    assert isinstance(lease, Accepted)
    assert number_of(lease.subject_id) > MADE_AT_MS


def test_a_second_start_on_it_leaves_nothing_out(stable: NewStable) -> None:
    world = a_copy(stable)
    counters = dict(world.fleet.counters.rows)
    world.advance(2 * MADE_AT_MS)
    world.run(ServerStarted(version="1"))
    assert world.fleet.counters.rows == counters
    assert reloaded(world.fleet).counters.rows == counters


def test_a_machine_that_the_other_server_has_named_since_is_held_and_not_ended(
    stable: NewStable,
) -> None:
    world = a_copy(stable)
    world.advance(2 * MADE_AT_MS)
    world.list(a_machine(node_id="n-000004"))
    (node,) = world.in_phase(NodePhase.STOPPING)
    assert node.is_foreign
    assert not world.commands("stop_machine")
    assert orphans(world)


def test_a_machine_of_a_node_that_was_forgotten_before_the_backup_is_ended_as_ever(
    stable: NewStable,
) -> None:
    world = a_copy(stable)
    world.advance(2 * MADE_AT_MS)
    world.list(a_machine(node_id="n-000002"))
    (node,) = world.in_phase(NodePhase.STOPPING)
    assert not node.is_foreign
    assert world.commands("stop_machine")
