"""Every lifecycle table of the model: no dead ends, no ghosts, and not two lifecycles in one."""

from enum import Enum

import pytest

from hostler.base.lifecycle import IllegalTransition
from tools.gen import AnyLifecycle, find_lifecycles

ROWS_MAX = 20

each_lifecycle = pytest.mark.parametrize(
    "lifecycle", [pytest.param(one.lifecycle, id=one.lifecycle.name) for one in find_lifecycles()]
)


def phases_of(lifecycle: AnyLifecycle) -> set[object]:
    phases: type[Enum] = type(lifecycle.initial)
    return set(phases)


def ways_out(lifecycle: AnyLifecycle, phase: object) -> list[object]:
    return [after for (before, _), after in lifecycle.table.items() if before == phase]


def reachable_from(lifecycle: AnyLifecycle, start: object) -> set[object]:
    seen: set[object] = set()
    waiting = [start]
    while waiting:
        phase = waiting.pop()
        if phase not in seen:
            seen.add(phase)
            waiting += ways_out(lifecycle, phase)
    return seen


def test_the_model_has_lifecycles() -> None:
    assert [one.lifecycle.name for one in find_lifecycles()]


@each_lifecycle
def test_every_phase_is_reachable(lifecycle: AnyLifecycle) -> None:
    unreachable = phases_of(lifecycle) - reachable_from(lifecycle, lifecycle.initial)
    assert not unreachable, "a phase that nothing leads to is a word without a meaning"


@each_lifecycle
def test_a_terminal_phase_has_no_way_out(lifecycle: AnyLifecycle) -> None:
    leaking = [phase for phase in lifecycle.terminal if ways_out(lifecycle, phase)]
    assert not leaking, "what has ended stays ended: a new life is a new record"


@each_lifecycle
def test_every_phase_leads_to_an_end(lifecycle: AnyLifecycle) -> None:
    stuck = [
        phase
        for phase in phases_of(lifecycle)
        if not reachable_from(lifecycle, phase) & lifecycle.terminal
    ]
    assert not stuck, "a record that can never end is one that is never cleaned up"


@each_lifecycle
def test_every_trigger_is_used(lifecycle: AnyLifecycle) -> None:
    used = {trigger for _, trigger in lifecycle.table}
    triggers = {type(trigger) for trigger in used}
    assert len(triggers) == 1, "the arrows of one table are of one enum"
    every: type[Enum] = triggers.pop()
    assert not set(every) - used, "a trigger that moves nothing is a lie"


@each_lifecycle
def test_an_arrow_that_is_not_in_the_table_is_refused(lifecycle: AnyLifecycle) -> None:
    triggers = {trigger for _, trigger in lifecycle.table}
    for phase in phases_of(lifecycle):
        for trigger in triggers:
            if (phase, trigger) in lifecycle.table:
                assert lifecycle.next(phase, trigger) is lifecycle.table[(phase, trigger)]
            else:
                with pytest.raises(IllegalTransition):
                    lifecycle.next(phase, trigger)


@each_lifecycle
def test_a_table_is_one_lifecycle(lifecycle: AnyLifecycle) -> None:
    assert len(lifecycle.table) <= ROWS_MAX, (
        "a longer table has two lifecycles in it: provisioning, health and eligibility are three"
        " fields, not one"
    )
