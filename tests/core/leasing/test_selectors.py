"""Selectors: a lease gets a node whose labels are as it wants, or is told that none is."""

import pytest

from hostler.base.errors import Rejected
from hostler.core.inputs import AcquireLease, LabelNode
from hostler.core.replies import Refused
from hostler.model.lease import LeasePhase
from hostler.model.reason import Reason
from hostler.model.selector import SELECTOR_RULES_MAX, read_selector, selector_text
from hostler.model.shape import Requirement
from hostler.testing.builders import a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.conftest import NewRental


def wanting(text: str) -> Requirement:
    return Requirement(node_labels=read_selector(text))


OWN = a_pool(tiers=(a_fixed_tier(labels={"zone": "x", "gpu": "yes"}),))


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("rack=b", "n-900002"),
        ("rack==b", "n-900002"),
        ("rack!=a", "n-900002"),
        ("rack in (b, c)", "n-900002"),
        ("rack notin (a)", "n-900002"),
        ("rack in (a, b)", "n-900001"),
        ("slow", "n-900002"),
        ("!slow", "n-900001"),
        ("zone=x", "n-900001"),
        ("zone=y", "n-900002"),
        ("gpu, rack=b, !fast", "n-900002"),
        ("nothing!=here", "n-900001"),
    ],
)
def test_a_lease_gets_a_node_with_the_labels_that_it_wants(
    rental: NewRental, selector: str, found: str
) -> None:
    """A node's own labels win over those of its tier."""
    world = rental(
        OWN,
        a_node("n-900001", labels={"rack": "a"}),
        a_node("n-900002", labels={"rack": "b", "slow": "very", "zone": "y"}),
    )
    lease = world.acquire(requirement=wanting(selector))
    assert (lease.phase, lease.node_id) == (LeasePhase.HELD, found)


def test_where_none_could_ever_match_the_request_is_refused_with_the_reason(
    rental: NewRental,
) -> None:
    world = rental(OWN, a_node("n-900001"))
    answer = world.ask(AcquireLease, pool="p", timeout_ms=1_000, requirement=wanting("rack=a, gpu"))
    assert isinstance(answer, Refused)
    assert answer.code == "node_labels"
    assert "gpu, rack=a" in answer.message


def test_one_that_matches_and_is_held_is_waited_for_by_name_of_the_labels(
    rental: NewRental,
) -> None:
    world = rental(OWN, a_node("n-900001", labels={"rack": "a"}), a_node("n-900002"))
    first = world.acquire(requirement=wanting("rack=a"))
    second = world.acquire(requirement=wanting("rack=a"), timeout_ms=900_000)
    assert (second.phase, second.reason) == (LeasePhase.WAITING, Reason.NODE_LABELS)
    third = world.acquire()
    assert third.node_id == "n-900002"
    world.release(first)
    assert world.fleet.leases[second.lease_id].node_id == "n-900001"


def test_a_label_that_is_given_later_lets_it_have_the_node(rental: NewRental) -> None:
    world = rental(OWN, a_node("n-900001", labels={"rack": "a"}), a_node("n-900002"))
    world.acquire(requirement=wanting("rack=a"))
    waiting = world.acquire(requirement=wanting("rack=a"), timeout_ms=900_000)
    world.ask(LabelNode, node_id="n-900002", labels={"rack": "a"})
    assert world.fleet.leases[waiting.lease_id].node_id == "n-900002"


def test_a_machine_is_launched_where_the_tier_gives_the_label(rental: NewRental) -> None:
    plain, racked = an_elastic_tier("plain"), an_elastic_tier("racked", labels={"rack": "a"})
    world = rental(a_pool(tiers=(plain, racked)))
    world.acquire(requirement=wanting("rack=a"), timeout_ms=900_000)
    (node,) = world.fleet.nodes.in_order()
    assert node.tier == "racked"


def test_labels_of_a_tier_that_change_count_at_once(rental: NewRental) -> None:
    world = rental(OWN, a_node("n-900001"), a_node("n-900002", labels={"zone": "new"}))
    first = world.acquire(requirement=wanting("zone=new"))
    assert first.node_id == "n-900002"
    waiting = world.acquire(requirement=wanting("zone=new"), timeout_ms=900_000)
    world.configure(a_pool(tiers=(a_fixed_tier(labels={"zone": "new"}),)))
    assert world.fleet.leases[waiting.lease_id].node_id == "n-900001"


@pytest.mark.parametrize(
    "text", ["=a", "rack=", "rack in ()", "rack in (a", "a,,b", "a,", "a b", "rack>1", "!", "a=b=c"]
)
def test_what_cannot_be_read_is_rejected(text: str) -> None:
    with pytest.raises(Rejected, match="selector"):
        read_selector(text)


def test_equal_wishes_are_equal_however_they_are_written() -> None:
    one, other = read_selector("b in (y, x),a = 1 ,!c"), read_selector("!c, a=1, b in (x,y,x)")
    assert one == other
    assert selector_text(one) == "!c, a=1, b in (x, y)"
    assert read_selector(selector_text(one)) == one
    assert read_selector("  ") == ()
    with pytest.raises(Rejected, match="at most"):
        read_selector(",".join(f"a{number}" for number in range(SELECTOR_RULES_MAX + 1)))
