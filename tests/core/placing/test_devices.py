"""Devices are given by name, whole or in part, and chosen with an eye on what work needs beside."""

from typing import Any

import pytest

from hostler.model import Node
from hostler.model.allocation import EndCause
from hostler.model.bundle import Job
from hostler.model.reason import Reason
from hostler.model.shape import (
    AttributeMatch,
    Capability,
    CapabilityRequest,
    Device,
    MatchRule,
    Requirement,
    Shape,
)
from hostler.testing.builders import a_job, a_node
from tests.core.placing.theatre import Theatre, own_pool


def a_gpu_node(node_id: str, count: int = 2, *, cores: int = 16, **attributes: str) -> Node:
    """Return a node with named GPUs."""
    return a_node(
        node_id,
        incarnation=1,
        shape=Shape(
            cores_milli=cores * 1_000,
            capabilities=(Capability(name="gpu", count=count, attributes=attributes),),
            devices=tuple(Device(kind="gpu", device_id=str(n)) for n in range(count)),
        ),
    )


def wants(cores: int = 1, **gpu: Any) -> Job:
    """Return a job that asks for GPUs and some cores."""
    asked = (CapabilityRequest(name="gpu", **gpu),) if gpu else ()
    return a_job(requirement=Requirement(cores_milli=cores * 1_000, capabilities=asked))


def devices(world: Theatre, name: str) -> tuple[str, ...]:
    """Return the GPUs of a bundle's only replica."""
    return world.live(f"{name}/main/0").devices["gpu"]


def test_shares_fill_a_device_before_another_is_opened() -> None:
    world = Theatre(own_pool(), a_gpu_node("n-1"))
    for name, milli in (("a", 600), ("b", 500), ("c", 400), ("d", 300)):
        world.submit(name, wants(milli=milli))
    assert [devices(world, name) for name in "abcd"] == [("0",), ("1",), ("0",), ("1",)]


def test_what_is_left_of_a_device_is_not_a_whole_one() -> None:
    world = Theatre(own_pool(), a_gpu_node("n-1"))
    world.submit("a", wants(milli=100))
    world.submit("b", wants(count=2))
    replica = world.replica("b/main/0")
    assert (replica.reason, world.place("b/main/0")) == (Reason.NO_CAPACITY, None)
    assert "capability_count" in replica.reason_detail


def test_a_share_comes_back_when_its_holder_ends() -> None:
    world = Theatre(own_pool(), a_gpu_node("n-1", 1))
    world.submit("a", wants(milli=700))
    world.submit("b", wants(milli=700))
    assert world.place("b/main/0") is None
    world.become_ready("a/main/0")
    world.delete("a")
    world.finish_stops()
    assert devices(world, "b") == ("0",)


def test_a_share_is_found_again_after_a_restart() -> None:
    world = Theatre(own_pool(), a_gpu_node("n-1", 1))
    world.submit("a", wants(milli=700))
    world.restart()
    world.submit("b", wants(milli=400))
    world.submit("c", wants(milli=300))
    assert world.place("b/main/0") is None
    assert devices(world, "c") == ("0",)


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (AttributeMatch(attribute="model", rule=MatchRule.IN, values=("l4", "t4")), "n-2"),
        (AttributeMatch(attribute="gib", rule=MatchRule.AT_LEAST, values=("40",)), "n-3"),
        (AttributeMatch(attribute="nvlink", rule=MatchRule.EXISTS), "n-1"),
        (AttributeMatch(attribute="model", rule=MatchRule.AT_LEAST, values=("1",)), None),
    ],
)
def test_attributes_are_held_against_rules(match: AttributeMatch, expected: str | None) -> None:
    world = Theatre(
        own_pool(),
        a_gpu_node("n-1", model="a10", gib="24", nvlink="2"),
        a_gpu_node("n-2", model="l4", gib="9"),
        a_gpu_node("n-3", model="h100", gib="80"),
    )
    world.submit("a", wants(count=1, matches=(match,)))
    assert world.place("a/main/0") == expected


def test_work_that_needs_many_cores_goes_where_there_are_many_to_a_device() -> None:
    """On n-1 it would strand a GPU, although n-1 would be the tighter fit."""
    world = Theatre(own_pool(), a_gpu_node("n-1", 2, cores=16), a_gpu_node("n-2", 2, cores=64))
    world.submit("usual", wants(8, count=1))
    assert world.place("usual/main/0") == "n-1"
    world.submit("hungry", wants(12, count=1))
    assert world.place("hungry/main/0") == "n-2"


def test_work_without_devices_does_not_strand_those_of_others() -> None:
    world = Theatre(own_pool(), a_gpu_node("n-1", 1, cores=16), a_gpu_node("n-2", 2, cores=64))
    world.submit("usual", wants(12, count=1))
    assert world.place("usual/main/0") == "n-1"
    world.submit("again", wants(12, count=1))
    world.submit("plain", wants(30))
    world.submit("third", wants(12, count=1))
    assert world.place("third/main/0") == "n-2"


def test_work_that_any_device_serves_leaves_those_that_others_insist_on() -> None:
    world = Theatre(
        own_pool(), a_gpu_node("n-1", 4, model="rare"), a_gpu_node("n-2", 8, model="common")
    )
    world.submit("picky", wants(count=1, attributes={"model": "rare"}))
    assert world.place("picky/main/0") == "n-1"
    world.submit("easy", wants(count=1))
    assert world.place("easy/main/0") == "n-2"


def test_a_recovered_replica_gets_what_it_had_asked_for() -> None:
    world = Theatre(own_pool(), a_gpu_node("n-1", 1), a_gpu_node("n-2", 1))
    world.submit("a", wants(milli=250))
    before = world.place("a/main/0")
    world.become_ready()
    world.end("a/main/0", EndCause.EXITED)
    assert world.place("a/main/0") != before
    assert devices(world, "a") == ("0",)
