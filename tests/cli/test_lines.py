"""Lines made from views: events, nodes, plans, explanations. No server is needed to read them."""

import time
from typing import Any

import msgspec
import pytest

from hostler.cli.commands.apply import plan_lines
from hostler.cli.event_lines import event_line
from hostler.cli.explanations import explained
from hostler.cli.tables import node_state
from hostler.wire.http import (
    AttemptView,
    CheckView,
    DecisionView,
    EventView,
    ExplainView,
    HurtView,
    NodeView,
    PlannedReplica,
    PlanView,
    ProtectionView,
)
from hostler.wire.http.explain import ChangeView, WayView, WhyView
from hostler.wire.http.nodes import CordonView


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


UNCHANGED = "nothing was changed (revision 1)"

EVENT = EventView(
    seq=7,
    kind="node_lost",
    at_ms=3_723_000,
    about={"node": "n-1", "pool": "studio", "machine": "n-1"},
    data={"silent_ms": 20_000, "retry_at_ms": 60_000, "why": "no word", "is_spare": False, "x": ""},
)


def test_an_event_is_one_line_that_people_can_read() -> None:
    assert event_line(EVENT) == (
        '01:02:03  node_lost                 n-1 studio  silent=20s retry_at=00:01:00 why="no word"'
        " is_spare=false"
    )
    assert event_line(EVENT, is_wide=True).startswith("       7  1970-01-01 01:02:03  node_lost")
    assert "\x1b[31mnode_lost" in event_line(EVENT, is_colour=True)


def a_node(**changes: object) -> NodeView:
    plain: dict[str, Any] = {
        field.name: None if field.required else field.default
        for field in msgspec.structs.fields(NodeView)
    }
    return NodeView(**{**plain, "phase": "ready", "health": "live", **changes})


CORDON = CordonView(by="me", reason="", at_ms=0)


@pytest.mark.parametrize(
    ("node", "state"),
    [
        (a_node(), "ready"),
        (a_node(health="lost"), "lost"),
        (a_node(health="suspect", cordon=CORDON), "suspect cordoned"),
        (a_node(phase="draining", health="lost"), "draining lost"),
        (a_node(phase="starting", health="lost"), "starting"),
    ],
)
def test_a_node_says_what_matters_most(node: NodeView, state: str) -> None:
    assert node_state(node) == state


def planned(index: int, **changes: object) -> PlannedReplica:
    plain: dict[str, object] = {
        "replica_id": f"b/j/{index}",
        "role": "primary",
        "change": "create",
        "outcome": "placed",
        "node_id": "n-1",
        "pool": "studio",
        "tier": "own",
        "offer": "",
        "reason": None,
        "reason_detail": "",
        "degraded_by": [],
        "trace": "studio/own: 2 looked at",
        "decision": None,
    }
    return msgspec.convert({**plain, **changes}, PlannedReplica)


def test_a_plan_says_what_would_become_of_each_replica() -> None:
    view = PlanView(
        bundle_id="b",
        revision=1,
        is_accepted=True,
        errors=[],
        change="update",
        replicas=[
            planned(0),
            planned(1, outcome="launching", tier="burst", offer="small", node_id=None),
            planned(2, outcome="waiting", reason="no_capacity", reason_detail="2 of 4"),
            planned(10, change="remove", outcome="gone", degraded_by=["spread_zone"]),
        ],
        launch_count=1,
        launch_microusd_per_hour=100_000,
        protection=ProtectionView(
            is_protected=False,
            hurts=[HurtView(kind="zone", name="a", replicas={"b/j/0": "no_capacity"})],
            unplaced=["b/j/2"],
        ),
    )
    assert plan_lines(view) == [
        "bundle b would change",
        "  + b/j/0   on n-1 (studio/own)",
        "  + b/j/1   on a machine to be launched (studio/burst, offer small)",
        "  + b/j/2   waits: no_capacity: 2 of 4",
        "            studio/own: 2 looked at",
        "  - b/j/10  gone, degraded by spread_zone",
        "  ! not protected: without zone a no place for b/j/0 (no_capacity)",
        "4 replicas, 1 would wait, 1 machine would be launched for $0.10 an hour; " + UNCHANGED,
    ]


def test_an_explanation_ends_with_what_a_person_can_do() -> None:
    attempt = AttemptView(
        pool="studio",
        tier="own",
        candidate_count=3,
        filtered_count=3,
        scored_count=0,
        filtered_by_reason={"capacity": 3},
        filtered=[],
        scored=[],
        outcome="nothing fits",
    )
    decision = DecisionView(
        at_ms=0,
        is_recovery=False,
        outcome="nothing fits",
        node_id=None,
        rule="",
        degraded_by=[],
        attempts=[attempt],
        victims=[],
    )
    view = ExplainView(
        about="b/j/0",
        kind="replica",
        phase="pending",
        summary="It waits for room.",
        reasons=[
            WhyView(
                by="placing",
                reason="no_capacity",
                detail="3 nodes",
                since_at_ms=2**60,
                meaning="No node has room.",
                advice="Add nodes.",
            )
        ],
        next_at_ms=0,
        commands=["n-2/launch/1"],
        decisions=[decision, decision],
        node_id="n-1",
        checks=[CheckView(reason="capacity", detail="needs 4", meaning="Too small.", advice="")],
        ways=[
            WayView(
                changes=[
                    ChangeView(alteration="uncordon=n-1", text="uncordon n-1", until_at_ms=None),
                    ChangeView(
                        alteration="capacity=2", text="lower what it needs", until_at_ms=None
                    ),
                ]
            ),
            WayView(changes=[ChangeView(alteration="exclusions=none", text="wait", until_at_ms=1)]),
        ],
        revision=1,
    )
    lines = list(explained(view))
    assert lines[:-4] == [
        "replica b/j/0 is pending",
        "It waits for room.",
        "",
        "Because:",
        "  no_capacity: 3 nodes (for 0ms, says placing)",
        "    No node has room.",
        "    Add nodes.",
        "Looked at again now, if nothing happens before.",
        "",
        "Under way:",
        "  n-2/launch/1",
        "",
        "From n-1 it is kept by:",
        "  capacity: needs 4",
        "    Too small.",
        "",
        "It would do after any one of these:",
        "  uncordon n-1, and lower what it needs",
        "    (see what follows: --if uncordon=n-1 --if capacity=2)",
        "  wait",
        "    which is so in 0ms, whatever happens",
        "    (see what follows: --if exclusions=none)",
        "",
    ]
    assert lines[-3:] == [
        "  studio/own: nothing fits; 3 looked at, 0 would do",
        "    and 3 more; in all: 3 capacity",
        "1 earlier decision: -o json shows them.",
    ]
