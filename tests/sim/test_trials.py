"""Trials: what people reported as broken elsewhere, each as a scenario of the simulator.

They are named as in the list of complaints about leasing, section 8; the seven checks that hold in
all of them are in `hostler.sim.trials.watch`. Not here, since they are no matter of a simulated
fleet: K05 (a second server is fenced by the store: `tests/engine`), L14's shutdown with force and
L23's machines that end by themselves (each provider's conformance), Z01, Z03, Z07 (the calendar:
`tests/core/test_calendar.py`, `tests/core/nodes/test_windows.py`), M04 and M07 (client and API),
N01 to N06 (speed: `bench`), S14's metric of the oldest wait (`tests/api`).
"""

from __future__ import annotations

from typing import Any

import pytest

from hostler.core.controllers import leasing
from hostler.sim.trials import watch
from hostler.sim.trials.play import play, play_all
from hostler.sim.trials.trial import TABLE, all_trials

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", all_trials())
def test_trial(name: str) -> None:
    outcome = play(TABLE[name])
    assert not outcome.violation, f"{TABLE[name].right}\n{outcome.story}"


def test_a_trial_that_is_not_there_is_one_clean_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert play_all(["X99"]) == 2
    assert "X99" in capsys.readouterr().err


def test_a_trial_that_breaks_says_how_to_see_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leasing, "has_idle_surplus", lambda *_: False)
    assert play_all(["C05"]) == 1
    told = capsys.readouterr().out
    assert "BROKEN" in told
    assert "--trials C05" in told


def test_a_refusal_that_does_not_say_why_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = leasing._refuse

    def mute(txn: Any, lease: Any, reason: Any, detail: str) -> None:
        refuse(txn, lease, reason, "")

    monkeypatch.setattr(leasing, "_refuse", mute)
    assert "does not say why" in play(TABLE["L02"]).violation


def test_machines_that_nobody_wants_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "idle_floor", lambda *_: 0)
    assert "nobody wants" in play(TABLE["C04"]).violation


def test_a_node_that_is_given_although_it_is_closed_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hostler.core.slot_index.is_free_for_lease", lambda _: True)
    assert play(TABLE["C02"]).violation
