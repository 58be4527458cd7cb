"""Configurations: whole or not at all, with every problem named."""

from typing import Any

import pytest

from hostler.core.inputs import ApplyConfiguration
from hostler.core.replies import Accepted, Refused
from hostler.model import Pool
from hostler.model.node import Health
from hostler.model.pool import Band, Offer, SpareTarget, TierKind
from hostler.model.settings import RecoveryLimits, Retention
from hostler.model.shape import Capability, Shape
from hostler.testing.builders import a_fixed_tier, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, an_own_node, an_own_pool


def problems(world: Stable, *pools: Pool, **settings: Any) -> dict[str, str]:
    """Return the code of each problem by its path."""
    answer = world.configure(*pools, **settings)
    assert isinstance(answer, Refused), answer
    return {each.path: each.code for each in answer.problems}


def test_a_configuration_is_applied_whole(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    assert world.configure(a_pool("q"), heartbeat_ms=1_000) == Accepted(subject_id="settings")
    settings = world.fleet.settings
    assert settings is not None
    assert (settings.fleet_id, settings.heartbeat_ms, settings.generation) == ("f-test", 1_000, 2)
    assert world.fleet.pools["q"].is_enabled
    assert (world.fleet.pools["p"].is_enabled, world.fleet.pools["p"].generation) == (False, 2)
    assert world.events().count("configuration_applied") == 1


def test_applying_the_same_again_changes_nothing(stable: NewStable) -> None:
    world = stable(an_own_pool())
    answer = world.configure(an_own_pool())
    assert answer == Accepted(subject_id="settings", is_repeat=True)
    assert world.events() == []


def test_a_pool_that_comes_back_is_enabled_again(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.configure()
    world.configure(an_own_pool())
    assert (world.fleet.pools["p"].is_enabled, world.fleet.pools["p"].generation) == (True, 3)


def test_deadlines_follow_the_settings(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.silence()
    world.configure(an_own_pool(), suspect_after_ms=20_000)
    world.advance(15_000)
    assert world.node().health is Health.LIVE
    world.configure(an_own_pool(), suspect_after_ms=12_000)
    assert world.node().health is Health.SUSPECT


def test_every_problem_is_named_and_nothing_is_changed(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    bad_offer = Offer(
        name="o", shape=Shape(capacity=-1, capabilities=(Capability(name="gpu", count=-1),))
    )
    tiers = (
        an_elastic_tier("t", provider="", node_count_max=0, offers=()),
        an_elastic_tier("t", offers=(bad_offer, bad_offer)),
        a_fixed_tier("f", offers=(bad_offer,), boot_ms=0, node_count_max=1),
    )
    found = problems(
        world,
        a_pool(
            "bad/name",
            tiers=tiers,
            warm_count=200,
            spares=(SpareTarget(count=1, band=Band.BRONZE),),
            slot_count=0,
        ),
        a_pool("q", tiers=()),
        a_pool("q"),
        heartbeat_ms=20_000,
        lost_after_ms=10_000,
        lost_node_count_max=0,
    )
    assert found == {
        "settings.lost_node_count_max": "too_small",
        "settings.suspect_after_ms": "shorter_than_heartbeats",
        "settings.fence_after_ms": "shorter_than_heartbeats",
        "settings.lost_after_ms": "lost_before_fenced",
        "pools[2].name": "duplicate_name",
        "pools[0].name": "bad_name",
        "pools[0].slot_count": "too_small",
        "pools[0].spares[0].band": "never_recovers",
        "pools[0].warm_count": "more_than_maximum",
        "pools[0].tiers[1].name": "duplicate_name",
        "pools[0].tiers[0].node_count_max": "too_small",
        "pools[0].tiers[0].provider": "missing",
        "pools[0].tiers[0].offers": "missing",
        "pools[0].tiers[1].offers[1].name": "duplicate_name",
        "pools[0].tiers[1].offers[0].shape.capacity": "too_small",
        "pools[0].tiers[1].offers[0].shape.capabilities[0].count": "too_small",
        "pools[0].tiers[1].offers[1].shape.capacity": "too_small",
        "pools[0].tiers[1].offers[1].shape.capabilities[0].count": "too_small",
        "pools[0].tiers[2].boot_ms": "too_small",
        "pools[0].tiers[2].offers": "not_launchable",
        "pools[0].tiers[2].offers[0].shape.capacity": "too_small",
        "pools[0].tiers[2].offers[0].shape.capabilities[0].count": "too_small",
        "pools[1].tiers": "missing",
    }
    assert world.fleet.pools["p"].generation == 1
    assert world.deltas[-1].changes == {}


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"lost_after_ms": 36_000}, "settings.lost_after_ms"),
        ({"suspect_after_ms": 60_000}, "settings.lost_after_ms"),
        ({"list_every_ms": 10}, "settings.list_every_ms"),
        ({"brake_window_ms": 10**7}, "settings.retention.ended_ms"),
        ({"recovery": RecoveryLimits(restart_count_max=-1)}, "settings.recovery.restart_count_max"),
        ({"retention": Retention(audit_count_max=0)}, "settings.retention.audit_count_max"),
        ({"retention": Retention(event_count_max=0)}, "settings.retention.event_count_max"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(
    stable: NewStable, settings: dict[str, object], path: str
) -> None:
    assert list(problems(stable(), an_own_pool(), **settings)) == [path]


def test_targets_may_be_anything_where_anybody_may_join(stable: NewStable) -> None:
    world = stable()
    assert isinstance(world.configure(an_own_pool(warm_count=10_000)), Accepted)
    assert world.fleet.pools["p"].tiers[0].kind is TierKind.FIXED


def test_the_first_configuration_names_the_fleet(stable: NewStable) -> None:
    world = stable()
    fields = world.configuration(an_own_pool())
    settings = world.fleet.settings
    assert settings is not None
    world.fleet.write(settings.KIND, settings.key, None)
    world.ask(ApplyConfiguration, **fields)
    assert world.fleet.settings is not None
    assert world.fleet.settings.fleet_id == "f-new"
