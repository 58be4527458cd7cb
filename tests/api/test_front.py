"""Busy routes are answered as the framework would answer them, and without it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from litestar import Litestar
from litestar.types import Receive, Scope, Send

from hostler.api import limits
from hostler.api.app import create_app
from hostler.api.auth import DEVELOPMENT_HEADER
from hostler.api.front import Front
from hostler.model.token import Role
from tests.api.lab import Lab

JSON = {"content-type": "application/json"}
BUSY = ("/v1/leases", "/v1/leases/nope/heartbeat", "/v1/leases/nope/release")


def asking(app: Any, token: str | None = None) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost", headers=headers
    )


@pytest.fixture
def app(lab: Lab) -> Litestar:
    return create_app(lab.engine, lab.links, is_loopback=True)


def told(answer: httpx.Response) -> tuple[int, dict[str, str], bytes]:
    return answer.status_code, dict(answer.headers), answer.content


@pytest.mark.parametrize("path", BUSY)
@pytest.mark.parametrize(
    "request_parts",
    [
        {},
        {"json": {}},
        {"json": {"pool": "nope"}},
        {"json": {"pool": 3, "epoch": "x"}},
        {"content": b"{", "headers": JSON},
        {"content": b"[" * 50_000, "headers": JSON},
        {"content": b"{}"},
        {"content": b" " * (limits.BODY_BYTES_MAX + 1), "headers": JSON},
        {"json": {}, "headers": {"Idempotency-Key": "k" * 300}},
        {"json": {}, "headers": {"Host": "elsewhere.example"}},
        {"json": {}, "headers": {"Origin": "http://elsewhere.example"}},
        {"json": {}, "headers": {"Authorization": "Bearer nobodys"}},
        {"json": {}, "headers": {"Authorization": "Basic abc"}},
    ],
)
async def test_a_no_is_the_same_both_ways(
    app: Litestar, path: str, request_parts: dict[str, Any]
) -> None:
    async with asking(Front(app)) as front, asking(app) as framework:
        ours = told(await front.post(path, **request_parts))
        theirs = told(await framework.post(path, **request_parts))
    assert ours == theirs
    assert ours[0] >= 400


async def test_a_yes_is_the_same_both_ways(app: Litestar) -> None:
    async with asking(Front(app)) as front, asking(app) as framework:
        body, headers = {"pool": "studio", "timeout_ms": 60_000}, {"Idempotency-Key": "one"}
        first = await front.post("/v1/leases", json=body, headers=headers)
        again = await framework.post("/v1/leases", json=body, headers=headers)
        assert first.status_code == again.status_code == 201
        assert first.headers == again.headers
        assert first.headers[DEVELOPMENT_HEADER] == "true"
        assert first.json()["lease_id"] == again.json()["lease_id"]
        path = f"/v1/leases/{first.json()['lease_id']}/release"
        released = told(await front.post(path, json={}))
        assert released == told(await framework.post(path, json={}))
        assert released[0] == 200


async def test_a_token_may_as_much_both_ways(lab: Lab, app: Litestar) -> None:
    await lab.token("admin", Role.ADMIN)
    viewer = await lab.token("viewer", Role.VIEWER)
    lessee = await lab.token("lessee", Role.LESSEE, pool="studio")
    async with asking(Front(app)) as front:
        assert (await front.post("/v1/leases", json={"pool": "studio"})).status_code == 401
    for token, pool, status in (
        (viewer, "studio", 403),
        (lessee, "runners", 403),
        (lessee, "studio", 201),
    ):
        async with asking(Front(app), token) as front, asking(app, token) as framework:
            one = await front.post("/v1/leases", json={"pool": pool})
            other = await framework.post("/v1/leases", json={"pool": pool})
        assert one.status_code == other.status_code == status
        assert one.headers.keys() == other.headers.keys()
        assert DEVELOPMENT_HEADER not in one.headers


class Framework:
    """Takes note of what comes to the framework."""

    def __init__(self, app: Litestar) -> None:
        self.routes = app.routes
        self.came: list[str] = []
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.came.append(f"{scope['method']} {scope['path']}")  # type: ignore[typeddict-item]  # only HTTP comes here
        await self._app(scope, receive, send)


async def test_only_what_is_no_busy_route_comes_to_the_framework(app: Litestar) -> None:
    front, framework = Front(app), Framework(app)
    front._app = framework  # type: ignore[assignment]  # to see what passes between them
    async with asking(front) as http:
        for path in BUSY:
            await http.post(path, json={})
        assert framework.came == []
        others = [
            ("GET", "/v1/leases"),
            ("PUT", "/v1/leases"),
            ("GET", "/v1/leases/nope"),
            ("POST", "/v1/leases/"),
            ("POST", "/v1/leases//release"),
            ("POST", "/v1/leases/nope/extend"),
            ("POST", "/v1/leases/a/b/release"),
            ("GET", "/nowhere"),
        ]
        for method, path in others:
            await http.request(method, path)
    assert framework.came == [f"{method} {path}" for method, path in others]
