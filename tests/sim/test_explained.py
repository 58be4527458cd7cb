"""spec/leasing.md 6.12, SC-238 and SC-239: replay, and what events alone tell.

SC-237 (load) is `bench`. Costs of SC-239 are in the books, which are records
(`tests/core/spend`).
"""

from __future__ import annotations

import pytest

from hostler.core.events import EventKind
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import TABLE, all_trials

pytestmark = pytest.mark.slow

_NODE_PHASES = {
    EventKind.NODE_REQUESTED: NodePhase.REQUESTED,
    EventKind.NODE_LAUNCHED: NodePhase.STARTING,
    EventKind.NODE_READY: NodePhase.READY,
    EventKind.NODE_STOPPING: NodePhase.STOPPING,
    EventKind.NODE_RETIRED: NodePhase.RETIRED,
}
_LEASE_PHASES = {
    EventKind.LEASE_WAITING: LeasePhase.WAITING,
    EventKind.LEASE_GRANTED: LeasePhase.HELD,
    EventKind.LEASE_REFUSED: LeasePhase.REFUSED,
    EventKind.LEASE_SETTLED: LeasePhase.SETTLED,
}


def played(name: str) -> Stage:
    """Play a trial and return the stage as it is in the end."""
    all_trials()
    stage = Stage(TABLE[name])
    outcome = stage.run()
    assert not outcome.violation, outcome.story
    return stage


def test_sc_238_replay() -> None:
    """Given one seed, then two runs of the simulation give identical event logs."""
    first, second = played("K14"), played("K14")
    assert first.watch.events == second.watch.events
    assert first.world.digest() == second.world.digest()


def test_sc_239_explainability() -> None:
    """Given the event log alone, then for every machine and lease its whole life and causes can be
    rebuilt and equal the snapshot."""
    stage = played("K14")
    nodes: dict[str, tuple[NodePhase, object]] = {}
    leases: dict[str, tuple[LeasePhase, object]] = {}
    for event in stage.watch.events:
        if event.kind in _NODE_PHASES:
            cause = event.data.get("retire_reason") or nodes.get(event.about["node"], (0, None))[1]
            nodes[event.about["node"]] = (_NODE_PHASES[event.kind], cause)
        elif event.kind in _LEASE_PHASES:
            how = event.data.get("outcome") or event.data.get("reason")
            leases[event.about["lease"]] = (_LEASE_PHASES[event.kind], how)
    fleet = stage.fleet
    assert len(fleet.nodes) > 10
    assert len(fleet.leases) > 50
    for node in fleet.nodes.in_order():
        reason = None if node.retire_reason is None else node.retire_reason.value
        assert nodes[node.node_id] == (node.phase, reason), node.node_id
    for lease in fleet.leases.in_order():
        outcome = lease.outcome or lease.reason
        assert leases[lease.lease_id] == (lease.phase, outcome), lease.lease_id
