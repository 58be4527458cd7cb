"""Asked again: the same key is the same request; pages and events go on where they were."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from hostler.base.errors import Failed
from hostler.client import Client, ClientError
from hostler.ports.store import Keep
from hostler.wire.documents import BundleDocument
from tests.api.lab import SLEEPER, Lab, a_bundle


def numbered(number: int) -> BundleDocument:
    return a_bundle(f"{{bundle: b{number}, pool: studio, jobs: [{{name: j, run: {{argv: [x]}}}}]}}")


KEY = {"idempotency-key": "once"}


async def test_the_same_key_is_the_same_lease(http: httpx.AsyncClient) -> None:
    asked = {"pool": "runners", "labels": {"run": "42"}}
    first = (await http.post("/v1/leases", json=asked, headers=KEY)).json()
    again = (await http.post("/v1/leases", json=asked, headers=KEY)).json()
    other = (await http.post("/v1/leases", json=asked)).json()
    assert first["lease_id"] == again["lease_id"] != other["lease_id"]
    answer = await http.post("/v1/leases", json={"pool": "studio"}, headers=KEY)
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_reused")


async def test_the_same_key_is_the_same_token_and_secret(http: httpx.AsyncClient) -> None:
    asked = {"name": "ci", "role": "lessee", "expires_in_ms": 60_000}
    first = await http.post("/v1/tokens", json=asked, headers=KEY)
    again = await http.post("/v1/tokens", json=asked, headers=KEY)
    assert first.json() == again.json()
    assert first.json()["secret"]


async def test_the_same_key_is_the_same_bundle(http: httpx.AsyncClient) -> None:
    asked = {"bundle": "b", "pool": "studio", "jobs": [{"name": "j", "run": {"argv": ["x"]}}]}
    assert (await http.post("/v1/bundles", json=asked, headers=KEY)).status_code == 201
    changed = {**asked, "replicas": 3}
    assert (await http.post("/v1/bundles", json=changed)).json()["generation"] == 2
    # The first request comes again, late: it does not undo the second.
    late = await http.post("/v1/bundles", json=asked, headers=KEY)
    assert (late.status_code, late.json()["generation"]) == (200, 2)


async def test_submitting_what_is_desired_already_changes_nothing(http: httpx.AsyncClient) -> None:
    asked = {"bundle": "b", "pool": "studio", "jobs": [{"name": "j", "run": {"argv": ["x"]}}]}
    assert (await http.post("/v1/bundles", json=asked)).status_code == 201
    again = await http.post("/v1/bundles", json=asked)
    assert (again.status_code, again.json()["generation"]) == (200, 1)


async def test_pages_follow_each_other_without_gap_or_repeat(http: httpx.AsyncClient) -> None:
    for number in range(7):
        await http.post("/v1/leases", json={"pool": "runners", "labels": {"n": str(number)}})
    seen: list[str] = []
    cursor = ""
    while True:
        page = (await http.get("/v1/leases", params={"limit": 3, "cursor": cursor})).json()
        assert len(page["items"]) <= 3
        seen += [lease["lease_id"] for lease in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [f"l-{number:06d}" for number in range(1, 8)]


async def test_a_plan_changes_nothing_and_binds(client: Client) -> None:
    plan = await client.plan_bundle(SLEEPER)
    assert (plan.is_accepted, plan.change, len(plan.replicas)) == (True, "create", 1)
    assert await client.bundles() == []
    bad = a_bundle("{bundle: b, pool: nope, jobs: [{name: j, run: {argv: [x]}}]}")
    refused = await client.plan_bundle(bad)
    assert not refused.is_accepted
    assert [error.path for error in refused.errors] == ["pool"]


async def seqs(client: Client, **options: object) -> list[int]:
    return [event.seq async for event in client.events(follow=False, **options)]  # type: ignore[arg-type]  # options of events


async def test_events_go_on_after_a_position(client: Client) -> None:
    await client.submit_bundle(SLEEPER)
    whole = await seqs(client, after_seq=0)
    assert whole == list(range(1, len(whole) + 1))
    assert await seqs(client, after_seq=2) == whole[2:]
    assert await seqs(client, tail=2) == whole[-2:]
    assert await seqs(client) == []


async def test_a_snapshot_and_the_stream_join(http: httpx.AsyncClient, client: Client) -> None:
    page = (await http.get("/v1/bundles")).json()
    await client.submit_bundle(SLEEPER)
    after = [e.kind async for e in client.events(after_seq=page["event_seq"], follow=False)]
    assert after[0] == "bundle_submitted"


async def test_a_filter_moves_the_position_past_what_it_leaves_out(
    http: httpx.AsyncClient, client: Client
) -> None:
    await client.submit_bundle(SLEEPER)
    newest = (await client.status()).event_seq
    answer = await http.get("/v1/events?follow=false&after_seq=0&kind=server_started")
    ids = [line for line in answer.text.splitlines() if line.startswith("id:")]
    assert ids == ["id: 1", f"id: {newest}"]
    about = await http.get("/v1/events?follow=false&after_seq=0&about=sleeper")
    assert about.text.count("event: ") == 2


async def test_last_event_id_resumes(http: httpx.AsyncClient, client: Client) -> None:
    await client.submit_bundle(SLEEPER)
    answer = await http.get("/v1/events?follow=false", headers={"last-event-id": "2"})
    assert answer.text.split("\n\n")[1].startswith("id: 3\nevent: bundle_submitted\ndata: {")


async def test_followers_are_told_of_what_happens(client: Client) -> None:
    stream = client.events(kinds=["bundle_submitted", "bundle_changed"])
    waiting = anext(stream)
    first = asyncio.ensure_future(waiting)
    await asyncio.sleep(0)
    # The stream begins "now", so what counts is submitted until the follower has seen one.
    for number in range(100):
        await client.submit_bundle(
            a_bundle(
                f"{{bundle: b{number}, pool: studio, jobs: [{{name: j, run: {{argv: [x]}}}}]}}"
            )
        )
        done, _ = await asyncio.wait([first], timeout=0.05)
        if done:
            break
    assert (await first).kind == "bundle_submitted"
    await stream.aclose()  # type: ignore[attr-defined]  # it is a generator


async def test_a_position_that_is_gone_is_told_so(client: Client, lab: Lab) -> None:
    for number in range(5):
        await client.submit_bundle(
            a_bundle(
                f"{{bundle: b{number}, pool: studio, jobs: [{{name: j, run: {{argv: [x]}}}}]}}"
            )
        )
    await lab.engine._store.prune(Keep(events=2, journal=2))
    lab.engine._publisher._recent.clear()
    with pytest.raises(ClientError) as gone:
        await seqs(client, after_seq=1)
    assert (gone.value.status, gone.value.code) == (410, "events_gone")
    newest = (await client.status()).event_seq
    with pytest.raises(ClientError) as ahead:
        await seqs(client, after_seq=newest + 1_000)
    assert ahead.value.code == "events_gone"


async def test_an_unreachable_server_is_said_plainly(lab: Lab) -> None:
    await lab.stop()
    async with lab.client() as client:
        with pytest.raises(
            Failed, match=r"cannot reach the server at http://127\.0\.0\.1"
        ) as error:
            await client.status()
    assert error.value.code == "unreachable"
