"""Timetables and rollouts over HTTP: what is to come, what collides, what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hostler.client import ClientError
from tests.api.lab import Lab, a_bundle


def text_of(days: int, hour: int) -> str:
    """Return a wall clock's reading so many days from now."""
    day = datetime.now(UTC).date() + timedelta(days=days)
    return f"{day}T{hour:02}:00"


def a_show(name: str, *, start: str, stop: str, zone: str = "Europe/Berlin") -> str:
    """Return a bundle that runs from one reading of a clock to another."""
    jobs = "[{name: j, requires: {capacity: 3}, run: {argv: [x]}}]"
    timetable = f"{{time_zone: {zone}, start: '{start}', stop: '{stop}'}}"
    return f"{{bundle: {name}, pool: studio, timetable: {timetable}, jobs: {jobs}}}"


async def test_what_is_to_come_is_told_on_both_clocks(lab: Lab) -> None:
    start, stop = text_of(3, 20), text_of(3, 22)
    async with lab.client() as client:
        await client.submit_bundle(a_bundle(a_show("late", start=start, stop=stop)))
        told = await client.upcoming()
        assert [(one.bundle_id, one.what) for one in told] == [("late", "start"), ("late", "stop")]
        assert told[0].local.startswith(start.replace("T", " "))
        assert told[0].time_zone == "Europe/Berlin"
        assert await client.upcoming(days=1) == []
        assert await client.upcoming(bundle="other") == []


async def test_a_plan_tells_what_collides(lab: Lab) -> None:
    start, stop = text_of(3, 20), text_of(3, 22)
    async with lab.client() as client:
        made = await client.plan_bundle(a_bundle(a_show("late", start=start, stop=stop)))
        (collision,) = made.collisions
        assert (collision.resource, collision.needed, collision.available) == ("capacity", 3, 0)
        assert collision.local.startswith(start.replace("T", " "))


async def test_a_zone_that_nobody_knows_is_refused(lab: Lab) -> None:
    show = a_show("b", start=text_of(1, 1), stop=text_of(1, 2), zone="Europe/Berlim")
    async with lab.client() as client:
        with pytest.raises(ClientError, match="'Europe/Berlim'"):
            await client.submit_bundle(a_bundle(show))


async def test_no_rollout_is_missing_and_cannot_be_steered(lab: Lab) -> None:
    async with lab.client() as client:
        await client.submit_bundle(
            a_bundle("{bundle: b, pool: studio, jobs: [{name: j, run: {argv: [x]}}]}")
        )
        with pytest.raises(ClientError) as missing:
            await client.rollout("b")
        assert missing.value.status == 404
        with pytest.raises(ClientError) as refused:
            await client.steer_rollout("b", "undo")
        assert (refused.value.status, refused.value.code) == (409, "no_rollout")
