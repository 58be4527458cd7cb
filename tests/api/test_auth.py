"""Who may do what: the open door of development, tokens, roles, scopes."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from hostler.client import Client, ClientError
from hostler.model.token import Role
from hostler.wire.http import CreateTokenRequest
from tests.api.lab import SLEEPER, Lab
from tests.eventually import eventually_async

LADDER = [Role.VIEWER, Role.LESSEE, Role.OPERATOR, Role.ADMIN]

LEAST_ROLES: list[tuple[str, str, Role]] = [
    ("GET", "/v1/status", Role.VIEWER),
    ("GET", "/v1/config", Role.VIEWER),
    ("GET", "/v1/bundles", Role.VIEWER),
    ("GET", "/v1/bundles/x", Role.VIEWER),
    ("POST", "/v1/bundles", Role.OPERATOR),
    ("DELETE", "/v1/bundles/x", Role.OPERATOR),
    ("POST", "/v1/bundles/x/jobs/y/start", Role.OPERATOR),
    ("POST", "/v1/bundles/x/jobs/y/stop", Role.OPERATOR),
    ("POST", "/v1/bundles/x/reset", Role.OPERATOR),
    ("GET", "/v1/bundles/x/rollout", Role.VIEWER),
    ("POST", "/v1/bundles/x/rollout/pause", Role.OPERATOR),
    ("POST", "/v1/bundles/x/rollout/resume", Role.OPERATOR),
    ("POST", "/v1/bundles/x/rollout/undo", Role.OPERATOR),
    ("PUT", "/v1/bundles/x/jobs/y/config", Role.OPERATOR),
    ("GET", "/v1/upcoming", Role.VIEWER),
    ("POST", "/v1/plan", Role.VIEWER),
    ("GET", "/v1/replicas", Role.VIEWER),
    ("GET", "/v1/replicas/x/y/0", Role.VIEWER),
    ("GET", "/v1/replicas/x/y/0/logs", Role.VIEWER),
    ("POST", "/v1/replicas/x/y/0/reset", Role.OPERATOR),
    ("GET", "/v1/allocations", Role.VIEWER),
    ("GET", "/v1/allocations/x", Role.VIEWER),
    ("GET", "/v1/allocations/x/logs", Role.VIEWER),
    ("GET", "/v1/nodes", Role.VIEWER),
    ("GET", "/v1/nodes/x", Role.VIEWER),
    ("POST", "/v1/nodes/x/cordon", Role.OPERATOR),
    ("POST", "/v1/nodes/x/uncordon", Role.OPERATOR),
    ("POST", "/v1/nodes/x/drain", Role.OPERATOR),
    ("POST", "/v1/nodes/x/confirm-lost", Role.OPERATOR),
    ("POST", "/v1/nodes/x/end", Role.OPERATOR),
    ("POST", "/v1/nodes/x/labels", Role.OPERATOR),
    ("GET", "/v1/services", Role.VIEWER),
    ("GET", "/v1/services/x", Role.VIEWER),
    ("GET", "/v1/spend", Role.VIEWER),
    ("GET", "/v1/budgets", Role.VIEWER),
    ("POST", "/v1/config/reload", Role.ADMIN),
    ("GET", "/v1/pools", Role.VIEWER),
    ("GET", "/v1/pools/x", Role.VIEWER),
    ("POST", "/v1/pools/x/retry", Role.OPERATOR),
    ("GET", "/v1/windows", Role.VIEWER),
    ("GET", "/v1/maintenance", Role.VIEWER),
    ("POST", "/v1/maintenance", Role.OPERATOR),
    ("DELETE", "/v1/maintenance/x", Role.OPERATOR),
    ("GET", "/v1/explain", Role.VIEWER),
    ("GET", "/v1/pending", Role.VIEWER),
    ("GET", "/v1/events", Role.VIEWER),
    ("GET", "/v1/audit", Role.OPERATOR),
    ("GET", "/v1/life", Role.VIEWER),
    ("POST", "/v1/leases", Role.LESSEE),
    ("GET", "/v1/leases", Role.VIEWER),
    ("GET", "/v1/leases/x", Role.VIEWER),
    ("POST", "/v1/leases/plan", Role.LESSEE),
    ("POST", "/v1/leases/x/extend", Role.LESSEE),
    ("POST", "/v1/leases/x/heartbeat", Role.LESSEE),
    ("POST", "/v1/leases/x/release", Role.LESSEE),
    ("POST", "/v1/leases/x/revoke", Role.OPERATOR),
    ("GET", "/v1/tokens", Role.ADMIN),
    ("POST", "/v1/tokens", Role.ADMIN),
    ("DELETE", "/v1/tokens/x", Role.ADMIN),
    ("GET", "/metrics", Role.VIEWER),
]


async def test_every_route_asks_for_its_least_role(lab: Lab) -> None:
    tokens = {role: await lab.token(role.value, role) for role in LADDER}
    agent = await lab.token("agent", Role.AGENT, pool="studio", tier="fixed")
    async with lab.http() as http:
        for method, path, least in LEAST_ROLES:
            query = "?follow=false" if path == "/v1/events" else ""

            async def ask(secret: str | None) -> tuple[int, str]:
                headers = {"authorization": f"Bearer {secret}"} if secret else {}
                answer = await http.request(method, path + query, headers=headers)  # noqa: B023 - called in this turn of the loop
                is_no = answer.status_code >= 400
                return answer.status_code, answer.json()["code"] if is_no else ""

            assert await ask(None) == (401, "unauthorized"), path
            assert await ask("ht_wrong") == (401, "unauthorized"), path
            assert await ask(agent) == (403, "forbidden"), path
            for role in LADDER:
                is_let_in = LADDER.index(role) >= LADDER.index(least)
                status, _ = await ask(tokens[role])
                assert (status not in (401, 403)) == is_let_in, (method, path, role, status)


async def test_no_route_is_missing_from_the_table(lab: Lab) -> None:
    async with lab.http() as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
    said = {(method, path.replace("/x", "/{}").replace("/y", "/{}").replace("/0", "/{}"))
            for method, path, _ in LEAST_ROLES}  # fmt: skip
    known = {
        (method.upper(), re.sub(r"\{\w+\}", "{}", path))
        for path, methods in paths.items()
        for method in methods
    }
    open_to_all = {
        ("GET", "/"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/openapi.json"),
        ("POST", "/v1/agent/join"),
    }
    assert known - said == open_to_all


async def test_the_door_is_open_until_the_first_admin_token(lab: Lab) -> None:
    async with lab.client() as anybody:
        status = await anybody.status()
        assert (status.is_development, status.principal, status.role) == (True, "local", "admin")
        viewer = await anybody.create_token(CreateTokenRequest(name="v", role="viewer"))
        assert (await anybody.status()).is_development
        admin = await anybody.create_token(CreateTokenRequest(name="root", role="admin"))
        with pytest.raises(ClientError, match="demands a token"):
            await anybody.status()
    async with lab.client(admin.secret) as root:
        status = await root.status()
        assert (status.is_development, status.principal, status.role) == (False, "root", "admin")
        await root.revoke_token(viewer.token.token_id)
        async with lab.client(viewer.secret) as revoked:
            with pytest.raises(ClientError, match="revoked"):
                await revoked.status()
        await root.revoke_token(admin.token.token_id)
        with pytest.raises(ClientError, match="revoked"):
            await root.status()
    async with lab.client() as anybody:
        with pytest.raises(ClientError, match="demands a token"):
            await anybody.status()


async def test_development_is_said_in_every_answer(http: httpx.AsyncClient, lab: Lab) -> None:
    assert (await http.get("/v1/status")).headers["hostler-development"] == "true"
    secret = await lab.token("root", Role.ADMIN)
    answer = await http.get("/v1/status", headers={"authorization": f"Bearer {secret}"})
    assert "hostler-development" not in answer.headers


async def test_a_token_ends_at_its_time(lab: Lab) -> None:
    now_ms = lab.engine.clock.now_ms()
    secret = await lab.token("brief", Role.VIEWER, expires_at_ms=now_ms + 100)
    async with lab.client(secret) as brief:

        async def is_refused() -> bool:
            try:
                await brief.status()
            except ClientError as error:
                return error.code == "token_expired"
            return False

        await eventually_async(is_refused)


async def test_a_secret_is_shown_once_and_never_again(client: Client, lab: Lab) -> None:
    made = await client.create_token(CreateTokenRequest(name="once", role="viewer"))
    async with lab.http() as http:
        for path in ("/v1/tokens", "/v1/events?follow=false&tail=1000"):
            text = (await http.get(path)).text
            assert made.secret not in text
            assert "sha256" not in text
    journal = await lab.engine._store.journal(0, 1_000)
    assert made.secret.encode() not in b"".join(row.body for row in journal)


async def test_a_lessee_has_its_own_leases_only(lab: Lab) -> None:
    await lab.token("root", Role.ADMIN)
    ann = await lab.token("ann", Role.LESSEE)
    bob = await lab.token("bob", Role.LESSEE)
    operator = await lab.token("op", Role.OPERATOR)
    async with lab.http(ann) as http:
        lease = (await http.post("/v1/leases", json={"pool": "runners"})).json()
        assert lease["holder"] == "ann"
    path = f"/v1/leases/{lease['lease_id']}/release"
    async with lab.http(bob) as http:
        answer = await http.post(path)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_holder")
    async with lab.http(operator) as http:
        assert (await http.post(path)).json()["phase"] == "refused"


async def test_a_lessee_may_be_kept_to_one_pool(lab: Lab) -> None:
    scoped = await lab.token("ci", Role.LESSEE, pool="runners")
    async with lab.http(scoped) as http:
        assert (await http.post("/v1/leases", json={"pool": "runners"})).status_code == 201
        answer = await http.post("/v1/leases", json={"pool": "studio"})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def test_the_audit_knows_who_did_what(lab: Lab) -> None:
    secret = await lab.token("olga", Role.OPERATOR)
    async with lab.client(secret) as olga:
        await olga.submit_bundle(SLEEPER)
        told = [event async for event in olga.events(tail=100, follow=False)]
    (submitted,) = [event for event in told if event.kind == "bundle_submitted"]
    assert submitted.about["principal"] == "olga"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"hostname": "h"}, 401, "unauthorized"),
        ({"hostname": "h", "join_token": "hj_n-000001.1.AAAA"}, 401, "unauthorized"),
        ({"hostname": "h", "join_token": "VIEWER"}, 403, "forbidden"),
        ({"hostname": "h", "join_token": "AGENT"}, 200, ""),
    ],
)
async def test_joining_needs_a_token_for_agents(
    lab: Lab, body: dict[str, Any], status: int, code: str
) -> None:
    await lab.token("root", Role.ADMIN)
    known = {
        "VIEWER": await lab.token("viewer", Role.VIEWER),
        "AGENT": await lab.token("agent", Role.AGENT, pool="studio", tier="fixed"),
    }
    body = {name: known.get(value, value) for name, value in body.items()}
    # What the agent says of pool and tier counts for nothing beside its token.
    body |= {"pool": "runners", "tier": "fixed", "machine_id": "m-1"}
    async with lab.http() as http:
        answer = await http.post("/v1/agent/join", json=body)
    assert answer.status_code == status
    if code:
        assert answer.json()["code"] == code
    else:
        node = await lab.engine.read(lambda fleet: fleet.nodes[answer.json()["node_id"]])
        assert (node.pool, node.tier) == ("studio", "fixed")
