"""What a bundle must be like to be accepted: everything that is wrong is said at once."""

import pytest

from hostler.core.replies import Refused
from hostler.model.constraint import SpreadOver, SpreadRule
from hostler.model.launch import DelayReadiness, ExecReadiness, HttpReadiness, Launch
from hostler.model.pool import Offer
from hostler.model.reason import Reason
from hostler.model.shape import CapabilityRequest, Requirement, Shape
from hostler.testing.builders import a_job, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import Theatre, fixture, n1, own_pool


def problems(world: Theatre, *args: object, **fields: object) -> list[tuple[str, str]]:
    """Return path and code of everything that is wrong with a submission."""
    answer = world.try_submit(*args, **fields)  # type: ignore[arg-type]  # passed through
    assert isinstance(answer, Refused), answer
    assert answer.code == "bundle_invalid"
    assert not world.fleet.bundles.rows
    return [(problem.path, problem.code) for problem in answer.problems]


def test_everything_is_said_at_once(theatre: NewTheatre) -> None:
    world = theatre(*fixture())
    bad = a_job("Main", launch=Launch(argv=("",), stop_signal="15"))
    assert problems(
        world,
        "b_1",
        bad,
        bad,
        pool="nowhere",
        fallback_pools=("p", "p"),
        replica_count=101,
        spread=(SpreadRule(over=SpreadOver.ZONE), SpreadRule(over=SpreadOver.ZONE)),
    ) == [
        ("bundle_id", "name_invalid"),
        ("replica_count", "out_of_range"),
        ("spread[1].over", "duplicate"),
        ("pool", "pool_unknown"),
        ("fallback_pools[1]", "duplicate"),
        ("jobs[0].name", "name_invalid"),
        ("jobs[0].launch.argv", "empty"),
        ("jobs[0].launch.stop_signal", "invalid"),
        ("jobs[1].name", "name_invalid"),
        ("jobs[1].name", "duplicate"),
        ("jobs[1].launch.argv", "empty"),
        ("jobs[1].launch.stop_signal", "invalid"),
    ]


def test_the_message_names_the_first_and_counts_the_rest(theatre: NewTheatre) -> None:
    answer = theatre(*fixture()).try_submit("b1", replica_count=0, pool="q")
    assert isinstance(answer, Refused)
    assert answer.message == "replica_count: choose a number from 1 to 100 (and 1 more)"
    assert answer.problems[1].message == "there is no pool q; pools are: p"


@pytest.mark.parametrize(
    ("launch", "path"),
    [
        (Launch(argv=()), "argv"),
        (Launch(argv=("a", "b\0")), "argv[1]"),
        (Launch(argv=("a",), env={"A=B": "c"}), "env.A=B"),
        (Launch(argv=("a",), ready_within_ms=0), "ready_within_ms"),
        (Launch(argv=("a",), stop_grace_ms=-1), "stop_grace_ms"),
        (Launch(argv=("a",), readiness=HttpReadiness(port=0)), "readiness.port"),
        (
            Launch(argv=("a",), readiness=HttpReadiness(port=1, interval_ms=0)),
            "readiness.interval_ms",
        ),
        (Launch(argv=("a",), readiness=ExecReadiness(argv=())), "readiness.argv"),
        (Launch(argv=("a",), readiness=DelayReadiness(delay_ms=60_000)), "readiness.delay_ms"),
    ],
)
def test_a_launch_that_cannot_work_is_refused(
    theatre: NewTheatre, launch: Launch, path: str
) -> None:
    found = problems(theatre(*fixture()), "b1", a_job(launch=launch))
    assert [where for where, _ in found] == [f"jobs[0].launch.{path}"]


def test_a_requirement_that_makes_no_sense_is_refused(theatre: NewTheatre) -> None:
    job = a_job(
        requirement=Requirement(capacity=-1, capabilities=(CapabilityRequest(name="", count=0),))
    )
    assert problems(theatre(*fixture()), "b1", job) == [
        ("jobs[0].requirement.capacity", "out_of_range"),
        ("jobs[0].requirement.capabilities[0].name", "empty"),
        ("jobs[0].requirement.capabilities[0].count", "out_of_range"),
    ]


def test_s_177_what_no_offer_can_meet_is_refused_unless_a_fixed_tier_may(
    theatre: NewTheatre,
) -> None:
    """Given a requirement of capacity 500, then `validateBundle` gives an error for pool `p`
    (elastic) and a warning for a fixed-only pool (here: it waits, and says why)."""
    elastic = theatre(a_pool())
    assert problems(elastic, "b1", a_job(capacity=500)) == [
        ("jobs[0].requirement.capacity", "requirement_unsatisfiable")
    ]
    for pool in (own_pool(), fixture()[0]):
        world = theatre(pool)
        world.submit("b1", a_job(capacity=500))
        assert world.replica().reason is Reason.NO_CAPACITY


def test_parts_that_no_single_offer_has_together_are_refused(theatre: NewTheatre) -> None:
    offers = (
        Offer(name="wide", shape=Shape(capacity=10, cores_milli=1_000)),
        Offer(name="quick", shape=Shape(capacity=1, cores_milli=9_000)),
    )
    world = theatre(a_pool(tiers=(an_elastic_tier(offers=offers),)))
    job = a_job(requirement=Requirement(capacity=10, cores_milli=9_000))
    assert problems(world, "b1", job) == [("jobs[0].requirement", "requirement_unsatisfiable")]


def test_a_fallback_pool_may_be_the_one_that_fits(theatre: NewTheatre) -> None:
    small = an_elastic_tier(offers=an_elastic_tier().offers[:1])
    world = theatre(a_pool(tiers=(small,)), a_pool("q"))
    world.submit("b1", a_job(capacity=50), fallback_pools=("q",))
    assert world.launched()[0].pool == "q"


def test_a_pool_that_left_the_configuration_takes_no_bundle(theatre: NewTheatre) -> None:
    world = theatre(own_pool(is_enabled=False), n1())
    assert problems(world) == [("pool", "pool_disabled")]
