"""The audit over HTTP: who, from where, about what, since when; and those who were turned away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from litestar.connection import ASGIConnection

from hostler.api.errors import Denied
from hostler.api.refusals import KINDS_MAX, Refusals
from hostler.client import ClientError
from hostler.model.token import Role
from hostler.wire.http import AuditView, CreateTokenRequest
from tests.api.lab import Lab
from tests.eventually import eventually_async


def told(entries: list[AuditView]) -> list[tuple[str, str]]:
    return [(entry.principal, entry.action) for entry in entries]


async def test_who_did_what_from_where(lab: Lab) -> None:
    alice = lab.client(await lab.token("alice", Role.ADMIN))
    made = await alice.create_token(CreateTokenRequest(name="bob", role="operator"))
    bob = lab.client(made.secret)
    await alice.revoke_token(made.token.token_id)
    (revoked, created) = await alice.audit(by="alice")
    assert [created.action, revoked.action] == ["create_token", "revoke_token"]
    assert created.remote == "127.0.0.1"
    assert created.token_id.startswith("t-")
    assert created.about == {"token": made.token.token_id}
    assert made.secret not in str(created)
    assert await alice.audit(by=created.token_id) == [revoked, created]
    assert told(await alice.audit(subject=made.token.token_id)) == [
        ("alice", "revoke_token"),
        ("alice", "create_token"),
    ]
    assert await alice.audit(since_at_ms=revoked.at_ms + 1, by="alice") == []
    assert await alice.audit(until_at_ms=created.at_ms - 1, by="alice") == []
    events = alice.events(after_seq=created.event_seq)
    assert (await anext(events)).kind == "token_created"
    await events.aclose()  # type: ignore[attr-defined]  # an asynchronous generator
    await bob.close()
    await alice.close()


async def test_those_who_were_turned_away_are_in_it_and_cannot_flood_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hostler.api.refusals.TOGETHER_MS", 300)
    admin = lab.client(await lab.token("admin", Role.ADMIN))
    viewer = await lab.token("viewer", Role.VIEWER)
    async with lab.http() as http:
        for _ in range(30):
            assert (await http.get("/v1/nodes")).status_code == 401
            authorization = {"authorization": f"Bearer {viewer}"}
            answer = await http.post("/v1/nodes/n-1/cordon", headers=authorization)
            assert answer.status_code == 403

    async def refused() -> list[AuditView]:
        return await admin.audit(outcome="refused")

    found = await eventually_async(refused)
    first = found[-1]
    assert (first.principal, first.action, first.code) == ("", "GET /v1/nodes", "unauthorized")
    assert first.remote == "127.0.0.1"

    async def all_of_them() -> list[AuditView]:
        found = await admin.audit(outcome="refused")
        return found if sum(entry.count for entry in found) == 60 else []

    found = await eventually_async(all_of_them)
    assert {(entry.principal, entry.code) for entry in found} == {
        ("", "unauthorized"),
        ("viewer", "forbidden"),
    }
    await admin.close()


async def test_however_many_knock_few_entries_are_written(lab: Lab) -> None:
    refusals = Refusals(lab.engine)
    for number in range(300):
        scope: Any = {"type": "websocket", "client": (f"10.0.0.{number % 30}", 1), "headers": []}
        refusals.note(ASGIConnection(scope), Denied(401, "unauthorized", "no"))
        refusals.note(ASGIConnection(scope), Denied(404, "node_not_found", "no"))
    await refusals.flush()
    async with lab.client() as client:

        async def written() -> list[AuditView]:
            return await client.audit(outcome="refused")

        found = await eventually_async(written)
    assert len(found) == KINDS_MAX + 1
    assert sum(entry.count for entry in found) == 300
    assert refusals.counts == {"unauthorized": 300}


async def test_pages_go_back_in_time_and_following_goes_on(lab: Lab) -> None:
    client = lab.client()
    for number in range(5):
        await client.create_token(CreateTokenRequest(name=f"t{number}", role="viewer"))
    async with lab.http() as http:
        page = (await http.get("/v1/audit", params={"limit": 2})).json()
        rest = (
            await http.get("/v1/audit", params={"limit": 99, "cursor": page["next_cursor"]})
        ).json()
    names = [one["data"].get("name") for one in (*page["items"], *rest["items"])]
    assert names[:5] == ["t4", "t3", "t2", "t1", "t0"]
    newest = page["items"][0]["audit_id"]
    waiting = asyncio.create_task(client.audit_after(newest, wait_ms=10_000))
    await client.create_token(CreateTokenRequest(name="late", role="viewer"))
    assert [entry.data["name"] for entry in await waiting] == ["late"]
    await client.close()


@pytest.mark.parametrize(
    "query", ["outcome=maybe", "after=x", "since_at_ms=yesterday", "cursor=%21"]
)
async def test_what_makes_no_sense_is_said(lab: Lab, query: str) -> None:
    async with lab.http() as http:
        answer = await http.get(f"/v1/audit?{query}")
    assert answer.status_code == 400
    assert answer.json()["code"] in ("parameter_invalid", "cursor_invalid")


async def test_only_operators_read_it(lab: Lab) -> None:
    client = lab.client(await lab.token("viewer", Role.VIEWER))
    with pytest.raises(ClientError, match="operator"):
        await client.audit()
    await client.close()
