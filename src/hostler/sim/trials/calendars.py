"""Trials 8.11: clock, time zone, schedule.

Z01, Z03 and Z07 are of the calendar itself: `tests/core/test_calendar.py` and `test_windows.py` run
both clock changes, `tests/engine` refuses a zone that is not there, and the covered hours are
printed when a configuration is looked over.
"""

from __future__ import annotations

from typing import Final

from hostler.model.calendar import Offset, TimeZone, Weekday, Window
from hostler.model.pool import SizeWindow
from hostler.sim.scenario import SettingsPlan
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import a_pool, trial

_DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000

_QUIET: Final = SettingsPlan(
    heartbeat_ms=600_000,
    suspect_after_ms=1_800_000,
    fence_after_ms=2_400_000,
    lost_after_ms=3_600_000,
    list_every_ms=1_800_000,
    ended_ms=14_400_000,
)
"""Days go by: agents and lists need not be looked at all the time."""

_BERLIN: Final = TimeZone(
    name="Europe/Berlin",
    offsets=(Offset(from_at_ms=0, offset_ms=2 * _HOUR_MS),),
    known_until_at_ms=4_000_000_000_000,
)


def _window(start: int, hours: int, **sizes: int) -> SizeWindow:
    return SizeWindow(
        name="day",
        window=Window(
            time_zone="Europe/Berlin",
            days=tuple(Weekday),
            from_ms=start * _HOUR_MS,
            to_ms=(start + hours) * _HOUR_MS,
        ),
        **sizes,
    )


def _local_ms(stage: Stage) -> int:
    return (stage.world.now_ms + 2 * _HOUR_MS) % _DAY_MS


@trial(
    "Z04",
    a_pool(boot_ms=60_000, idle_ms=1_000),
    settings=_QUIET,
)
def every_day(stage: Stage) -> None:
    """A window opens and closes every day at its own times."""
    stage.apply(time_zones=(_BERLIN,))
    stage.wait("1s")
    stage.configure(windows=(_window(14, 1, warm_count=1),))
    for _ in range(3 * 24 * 12):
        stage.wait("5m")
        minutes = _local_ms(stage) // 60_000
        ready = len(stage.free())
        if 14 * 60 <= minutes < 15 * 60:
            stage.expect(ready == 1, "it is open", at=minutes)
        elif not 14 * 60 - 5 <= minutes < 15 * 60 + 5:
            stage.expect(ready == 0, "it is closed", at=minutes)


@trial(
    "Z06",
    a_pool(boot_ms=120_000, idle_ms=1_000),
    settings=_QUIET,
)
def ready_when_it_begins(stage: Stage) -> None:
    """What a window asks for is ready when it begins, and made again if it ends."""
    stage.apply(time_zones=(_BERLIN,))
    stage.wait("1s")
    stage.configure(windows=(_window(9, 8, warm_count=2),))
    begin_ms = (9 * _HOUR_MS - _local_ms(stage)) % _DAY_MS
    stage.wait(begin_ms)
    stage.expect(len(stage.free()) == 2, "two are ready at nine", ready=len(stage.free()))
    stage.cloud.end(stage.billed()[0], "it died")
    stage.until(lambda: len(stage.billed()) == 2, "another is made", within="90m")
