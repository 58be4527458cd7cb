"""Lives: to whom an event belongs, and the phases that a row of events tells."""

import pytest

from hostler.core.events import EventKind
from hostler.core.life import Happening, phases, subject_of


def told(*happenings: tuple[str, int] | tuple[str, int, str]) -> list[tuple[str, int, int | None]]:
    spans = phases(
        Happening(kind=kind, at_ms=at_ms, allocation=rest[0] if rest else "")
        for kind, at_ms, *rest in happenings
    )
    return [(span.phase, span.since_at_ms, span.until_at_ms) for span in spans]


@pytest.mark.parametrize(
    ("kind", "about", "subject"),
    [
        (
            EventKind.REPLICA_READY,
            {"node": "n", "replica": "b/j/0"},
            "replica/b/j/0",
        ),
        (EventKind.NODE_READY, {"node": "n", "pool": "p"}, "node/n"),
        (EventKind.ROLLOUT_BEGUN, {"bundle": "b", "principal": "x"}, "bundle/b"),
        (EventKind.POOL_CLOSED, {"pool": "p"}, "pool/p"),
        (EventKind.LEASE_GRANTED, {"lease": "l", "pool": "p", "node": "n"}, None),
        (EventKind.TOKEN_CREATED, {"token": "t"}, None),
        (EventKind.NODE_RETIRED, {"node": ""}, None),
    ],
)
def test_an_event_belongs_to_the_most_particular_thing(
    kind: EventKind, about: dict[str, str], subject: str | None
) -> None:
    assert subject_of(kind, about) == subject


def test_a_node_is_told_phase_by_phase() -> None:
    assert told(
        ("node_requested", 0),
        ("node_launched", 10),
        ("node_ready", 40),
        ("node_suspected", 100),
        ("node_heard_again", 120),
        ("node_labelled", 130),
        ("node_drain_started", 200),
        ("node_suspected", 210),
        ("node_heard_again", 220),
        ("node_uncordoned", 230),
        ("node_stopping", 300),
        ("node_retired", 310),
    ) == [
        ("requested", 0, 10),
        ("starting", 10, 40),
        ("ready", 40, 100),
        ("suspect", 100, 120),
        ("ready", 120, 200),
        ("draining", 200, 210),
        ("suspect", 210, 220),
        ("draining", 220, 230),
        ("ready", 230, 300),
        ("stopping", 300, 310),
        ("retired", 310, None),
    ]


def test_the_end_of_an_old_place_is_not_the_end_of_the_replica() -> None:
    assert told(
        ("replica_placed", 0, "a-1"),
        ("replica_ready", 5, "a-1"),
        ("replica_placed", 50, "a-2"),
        ("replica_ready", 60, "a-2"),
        ("allocation_ended", 61, "a-1"),
        ("allocation_ended", 90, "a-2"),
        ("replica_recovering", 90),
    ) == [
        ("placed", 0, 5),
        ("ready", 5, 50),
        ("placed", 50, 60),
        ("ready", 60, 90),
        ("ended", 90, 90),
        ("recovering", 90, None),
    ]
