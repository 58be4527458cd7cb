"""Whatever happens, in whatever order: what must hold holds, and nothing is left half done."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hostler.base.ids import NodeId
from hostler.core import invariants
from hostler.core.asking import Request
from hostler.core.delta import Delta
from hostler.core.explain import explain, explain_replica, pending
from hostler.core.explain.fit import fit_of
from hostler.core.fleet import Fleet
from hostler.core.inputs import (
    AgentSaidHello,
    AnyInput,
    CommandSettled,
    FullScan,
    ServerStarted,
)
from hostler.core.limits import ROUNDS_MAX
from hostler.core.step import step
from hostler.model import OutboxEntry
from hostler.model.node import NodePhase
from tests.core.history import History
from tests.core.mirror import indexed, places_are_true, reloaded, snapshot, timers

pytestmark = pytest.mark.slow

BATCH_COUNT_MAX = 25
Below = Callable[[int], int]


def numbers(data: st.DataObject) -> Below:
    """Draw numbers below a bound."""
    return lambda bound: data.draw(st.integers(0, bound - 1))


def live(below: Below, after: Callable[[Fleet, Delta, list[AnyInput]], None]) -> Fleet:
    """Let a fleet live through a history, with a look at it after each step."""
    fleet = Fleet()
    history = History(fleet, below)
    for _ in range(1 + below(BATCH_COUNT_MAX)):
        batch = history.batch()
        advance(fleet, batch, fleet.now_ms, after)
        if history.chance():
            until_ms = fleet.now_ms + history.pause_ms()
            while (at_ms := fleet.timers.next_at_ms()) is not None and at_ms <= until_ms:
                advance(fleet, [], at_ms, after)
            advance(fleet, [], until_ms, after)
    return fleet


def advance(
    fleet: Fleet,
    batch: list[AnyInput],
    now_ms: int,
    after: Callable[[Fleet, Delta, list[AnyInput]], None],
) -> None:
    """Make one step for good, and those that are due at once after it."""
    for _ in range(ROUNDS_MAX):
        delta = step(fleet, batch, now_ms)
        fleet.keep(delta)
        after(fleet, delta, batch)
        at_ms = fleet.timers.next_at_ms()
        if at_ms is None or at_ms > fleet.now_ms:
            return
        batch = []
    raise AssertionError("the fleet keeps asking to be looked at now")


def nothing(_fleet: Fleet, _delta: Delta, _batch: list[AnyInput]) -> None:
    """Look at nothing."""


@settings(max_examples=30)
@given(data=st.data())
def test_what_must_hold_holds_after_every_step(data: st.DataObject) -> None:
    def look(fleet: Fleet, delta: Delta, _batch: list[AnyInput]) -> None:
        invariants.check_changed(fleet, delta)
        invariants.check_all(fleet)
        assert places_are_true(fleet)

    live(numbers(data), look)


@settings(max_examples=20)
@given(data=st.data())
def test_a_second_look_finds_nothing_to_do(data: st.DataObject) -> None:
    """Every controller, run again on the state that it left, writes nothing."""

    def look(fleet: Fleet, _delta: Delta, _batch: list[AnyInput]) -> None:
        at_ms = fleet.timers.next_at_ms()
        if at_ms is not None and at_ms <= fleet.now_ms:
            return  # it has asked for another step itself
        again = step(fleet, [FullScan()], fleet.now_ms)
        changes, events = dict(again.changes), list(again.events)
        fleet.drop(again)
        assert changes == {}
        assert events == []

    live(numbers(data), look)


@settings(max_examples=20)
@given(data=st.data())
def test_what_agents_tell_twice_counts_once(data: st.DataObject) -> None:
    """Any news twice, or late from an older life of an agent, changes nothing (5.11, rule 8).

    But for commands: whoever says hello has a new link, and is told again.
    """
    fleet = live(numbers(data), nothing)
    history = History(fleet, numbers(data))
    for one in (each for _ in range(4) for each in history.batch()):
        if isinstance(one, Request | ServerStarted | CommandSettled):
            continue
        told: list[AnyInput] = [one, one]
        if isinstance(one, AgentSaidHello):
            told.append(replace(one, incarnation=one.incarnation - 1))
        assert what_comes_of(fleet, told) == what_comes_of(fleet, [one]), one


def what_comes_of(fleet: Fleet, batch: list[AnyInput]) -> tuple[object, ...]:
    """Return what a step writes down, commands left out, and undo it."""
    delta = step(fleet, batch, fleet.now_ms)
    changes = {key: each for key, each in delta.changes.items() if key[0] != OutboxEntry.KIND}
    found = (changes, list(delta.events))
    fleet.drop(delta)
    return found


@settings(max_examples=20)
@given(data=st.data())
def test_a_dropped_step_leaves_no_trace(data: st.DataObject) -> None:
    fleet = live(numbers(data), nothing)
    history = History(fleet, numbers(data))
    before = snapshot(fleet)
    for _ in range(3):
        now_ms = fleet.now_ms + history.pause_ms()
        dropped = step(fleet, history.batch(), now_ms)
        fleet.drop(dropped)
        assert snapshot(fleet) == before


@settings(max_examples=20)
@given(data=st.data())
def test_a_fleet_that_is_loaded_is_the_fleet_that_lived(data: st.DataObject) -> None:
    fleet = live(numbers(data), nothing)
    again = reloaded(fleet)
    assert again.digest() == fleet.digest()
    assert indexed(again) == indexed(fleet)
    assert timers(again, after_ms=fleet.now_ms) == timers(fleet, after_ms=fleet.now_ms)


@settings(max_examples=20)
@given(data=st.data())
def test_everything_can_be_explained_and_is_as_before(data: st.DataObject) -> None:
    """S-172: whoever asks why, why not there, or what waits, changes nothing."""
    fleet = live(numbers(data), nothing)
    before = snapshot(fleet)
    now_ms = fleet.now_ms + data.draw(st.sampled_from([0, 1, 60_000]))
    for table in (fleet.nodes, fleet.leases, fleet.allocations, fleet.bundles, fleet.pools):
        for key in sorted(table.rows):
            assert explain(fleet, key) is not None
    for replica in list(fleet.replicas.in_order()):
        for node_id in sorted(fleet.nodes.rows):
            found = explain_replica(fleet, replica.replica_id, NodeId(node_id), now_ms=now_ms)
            assert found is not None
            assert found.fit is not None
            for way in found.fit.ways:
                changes = [each.alteration for each in way.changes]
                after = fit_of(fleet, replica, NodeId(node_id), changes, now_ms=now_ms)
                assert not after.checks, way
    told = pending(fleet, now_ms=now_ms)
    assert sum(group.count for group in told.groups) == told.replica_count + told.lease_count
    assert snapshot(fleet) == before
    assert places_are_true(fleet)


@settings(max_examples=15)
@given(data=st.data())
def test_the_same_history_ends_in_the_same_bytes(data: st.DataObject) -> None:
    steps: list[tuple[int, list[AnyInput], str]] = []

    def note(fleet: Fleet, delta: Delta, batch: list[AnyInput]) -> None:
        told = (delta.events, delta.dispatches, delta.replies, delta.next_wake_at_ms)
        steps.append((fleet.now_ms, batch, repr(told)))

    fleet = live(numbers(data), note)
    again = Fleet()
    for now_ms, batch, told in steps:
        delta = step(again, batch, now_ms)
        again.keep(delta)
        assert told == repr((delta.events, delta.dispatches, delta.replies, delta.next_wake_at_ms))
    assert again.digest() == fleet.digest()


@settings(max_examples=15)
@given(data=st.data())
def test_a_machine_that_may_exist_has_a_record_or_a_command(data: st.DataObject) -> None:
    """Never a paid machine without a record: every launch is a node until its machine is gone."""
    launched: dict[str, str] = {}

    def look(fleet: Fleet, delta: Delta, _batch: list[AnyInput]) -> None:
        for each in delta.dispatches:
            if each.command_id.partition("/")[2].startswith("launch"):
                launched[each.command_id.partition("/")[0]] = each.command_id
        for node_id in launched:
            node = fleet.nodes.get(node_id)
            if node is None or node.phase is NodePhase.RETIRED:
                continue
            has_command = any(key.startswith(f"{node_id}/") for key in fleet.commands.rows)
            if node.phase in (NodePhase.REQUESTED, NodePhase.STOPPING):
                assert has_command, node

    live(numbers(data), look)
