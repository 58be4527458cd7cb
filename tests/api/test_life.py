"""Lives over HTTP: phases with how long they lasted, across restarts, and when a thing is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.client import ClientError
from hostler.ports.store import Keep
from hostler.wire.http import LifeView
from tests.api.lab import CONFIG, SLEEPER, Lab, begin
from tests.eventually import eventually_async


async def test_a_bundle_and_its_replica_are_told_also_after_a_restart(tmp_path: Path) -> None:
    store_url = f"sqlite:///{tmp_path / 'store.db'}"
    lab = await begin(tmp_path, config=CONFIG, store_url=store_url)
    async with lab.client() as client:
        await client.submit_bundle(SLEEPER)
        await client.delete_bundle("sleeper")

        async def deleted() -> LifeView | None:
            life = await client.life("bundle/sleeper")
            return life if life.phases[-1].phase == "deleted" else None

        before = await eventually_async(deleted)
    assert before is not None
    assert [one.phase for one in before.phases] == ["active", "deleting", "deleted"]
    assert [one.kind for one in before.events][-1] == "bundle_submitted"
    assert all(one.lasted_ms >= 0 for one in before.phases)
    await lab.engine._store.prune(Keep(events=1, journal=1))
    await lab.stop()
    again = await begin(tmp_path, config=CONFIG, store_url=store_url)
    async with again.client() as client:
        after = await client.life("bundle/sleeper")
        one = await client.life("bundle/sleeper", count=1)
    await again.stop()
    assert after.events == before.events
    assert one.events == before.events[:1]
    assert one.next_cursor is not None


async def test_a_lease_tells_its_phases_by_itself(lab: Lab) -> None:
    async with lab.client() as client:
        with pytest.raises(ClientError):
            await client.life("lease/l-000001")
        asked = {"pool": "runners", "timeout_ms": 60_000}
        async with lab.http() as http:
            lease_id = (await http.post("/v1/leases", json=asked)).json()["lease_id"]
            life = await client.life(f"lease/{lease_id}")
            assert [(one.phase, one.until_at_ms) for one in life.phases] == [("waiting", None)]
            await http.post(f"/v1/leases/{lease_id}/release", json={})
        life = await client.life(f"lease/{lease_id}")
    assert [one.phase for one in life.phases] == ["waiting", "refused"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("about=n-1", "parameter_invalid"),
        ("about=token/t-1", "parameter_invalid"),
        ("about=node/n-999999", "life_not_found"),
        ("about=node/n-1&cursor=eA", "cursor_invalid"),
    ],
)
async def test_what_makes_no_sense_is_said(lab: Lab, query: str, code: str) -> None:
    async with lab.http() as http:
        answer = await http.get(f"/v1/life?{query}")
    assert answer.json()["code"] == code
