"""What a decision costs does not grow with the number of those who wait and fit nowhere.

Counted are decisions, not time: how often the search for a place is made, whoever asks.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from hostler.core.controllers import placing
from hostler.core.inputs import InventoryReported
from hostler.core.placement.walk import decide
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.testing.builders import a_job
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, Theatre, n1, n2, own_pool

FEW, MANY = 10, 500


@pytest.fixture
def decision_count(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the decisions that are really made; each call says how many since the last one."""
    made: list[str] = []
    real = decide

    def counted(demand: Any, *rest: Any) -> Any:
        made.append(demand.replica_id)
        return real(demand, *rest)

    monkeypatch.setattr(placing, "decide", counted)

    def since() -> int:
        count = len(made)
        made.clear()
        return count

    return since


def crowded(theatre: NewTheatre, waiting_count: int) -> Theatre:
    """Return two nodes of capacity 10, and many who want more than that."""
    world = theatre(own_pool(), n1(), n2())
    world.advance(1_000)  # nodes that have just come are news to everybody
    huge = a_job(capacity=11)
    world.run(*(world.submission(f"wait-{number:04d}", huge) for number in range(waiting_count)))
    return world


@pytest.mark.parametrize("waiting_count", [FEW, MANY])
def test_all_who_come_at_once_and_ask_alike_cost_one_decision(
    theatre: NewTheatre, decision_count: Callable[[], int], waiting_count: int
) -> None:
    world = crowded(theatre, waiting_count)
    assert decision_count() == 1
    waiting = list(world.fleet.replicas.rows.values())
    assert len(waiting) == waiting_count
    assert {(r.phase, r.reason) for r in waiting} == {(ReplicaPhase.PENDING, Reason.NO_CAPACITY)}


@pytest.mark.parametrize("waiting_count", [FEW, MANY])
def test_whoever_waits_in_vain_costs_nothing_more(
    theatre: NewTheatre, decision_count: Callable[[], int], waiting_count: int
) -> None:
    world = crowded(theatre, waiting_count)
    decision_count()
    world.submit("fits")
    assert decision_count() == 1, "one comes that fits"
    world.submit("late", a_job(capacity=11))
    assert decision_count() == 1, "one more comes that does not"
    node = world.fleet.nodes[N1]
    less = msgspec.structs.replace(node.shape, memory_bytes=2**30)
    world.run(InventoryReported(node_id=node.node_id, shape=less))
    assert decision_count() == 0, "a node changes and would still not do"
    more = msgspec.structs.replace(node.shape, capacity=11 + 4)
    world.run(InventoryReported(node_id=node.node_id, shape=more))
    assert decision_count() == 2, "a node that would do: one is placed, the next one finds it full"
    placed = [r for r in world.fleet.replicas.rows.values() if r.phase is ReplicaPhase.PLACED]
    assert len(placed) == 2
