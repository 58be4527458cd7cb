"""Every no is a problem document with a stable code, whoever says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from hostler.api.app import create_app
from hostler.api.links.links import AgentLinks
from hostler.engine.assemble import MEMORY_URL, EngineOptions, assemble
from hostler.wire.http import PROBLEM_MEDIA_TYPE, Problem
from tests.api.lab import running

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("method", "path", "request_parts", "status", "code"),
    [
        ("GET", "/nowhere", {}, 404, "path_unknown"),
        ("PUT", "/v1/bundles", {}, 405, "method_not_allowed"),
        ("POST", "/v1/leases", {"content": b"{", "headers": JSON}, 400, "bad_json"),
        ("POST", "/v1/bundles", {"content": b"{", "headers": JSON}, 400, "bad_json"),
        ("POST", "/v1/bundles", {"content": b"[" * 50_000, "headers": JSON}, 400, "bad_json"),
        ("POST", "/v1/bundles", {"content": b"\xff", "headers": JSON}, 400, "bad_json"),
        ("POST", "/v1/bundles", {"json": {"bundle": "X"}}, 422, "document_invalid"),
        ("POST", "/v1/bundles", {}, 422, "document_invalid"),
        ("POST", "/v1/leases", {"json": {"pool": 3}}, 422, "invalid"),
        ("POST", "/v1/leases", {"json": {"pool": "p", "pol": 1}}, 422, "invalid"),
        ("POST", "/v1/leases", {"content": b"{}"}, 415, "media_type"),
        ("POST", "/v1/plan", {"content": b" " * (5 << 20), "headers": JSON}, 413, "body_too_large"),
        ("POST", "/v1/leases", {"json": {"pool": "nope"}}, 404, "pool_not_found"),
        ("GET", "/v1/bundles/nope", {}, 404, "bundle_not_found"),
        ("GET", "/v1/nodes/nope", {}, 404, "node_not_found"),
        ("GET", "/v1/pools/nope", {}, 404, "pool_not_found"),
        ("GET", "/v1/leases/nope", {}, 404, "lease_not_found"),
        ("GET", "/v1/allocations/nope", {}, 404, "allocation_not_found"),
        ("GET", "/v1/allocations/nope/logs", {}, 404, "allocation_not_found"),
        ("GET", "/v1/replicas/a/b/0", {}, 404, "replica_not_found"),
        ("GET", "/v1/replicas/a/b/x", {}, 404, "path_unknown"),
        ("GET", "/v1/explain", {}, 400, "parameter_missing"),
        ("GET", "/v1/explain?about=nope", {}, 404, "not_found"),
        ("GET", "/v1/explain?about=x&at_event=1&at_revision=1", {}, 400, "parameter_invalid"),
        ("GET", "/v1/explain?about=x&if=sing%3Dloud", {}, 422, "alteration_unknown"),
        ("GET", "/v1/explain?about=x&if=capacity%3D1", {}, 400, "parameter_invalid"),
        ("GET", "/v1/explain?about=x&at_event=999", {}, 404, "moment_unknown"),
        ("GET", "/v1/explain?about=x&at_event=0", {}, 410, "journal_too_short"),
        ("GET", "/v1/explain?about=x&at_revision=1", {}, 404, "replica_not_found"),
        ("POST", "/v1/nodes/nope/cordon", {}, 404, "node_not_found"),
        ("POST", "/v1/nodes/nope/drain", {"json": {"deadline_ms": -1}}, 422, "invalid"),
        ("DELETE", "/v1/bundles/nope", {}, 404, "bundle_not_found"),
        ("DELETE", "/v1/tokens/nope", {}, 404, "token_not_found"),
        ("GET", "/v1/nodes?limt=3", {}, 400, "parameter_unknown"),
        ("GET", "/v1/nodes?limit=x", {}, 400, "parameter_invalid"),
        ("GET", "/v1/nodes?limit=100000", {}, 400, "parameter_invalid"),
        ("GET", "/v1/nodes?include_retired=perhaps", {}, 400, "parameter_invalid"),
        ("GET", "/v1/nodes?cursor=%21%21", {}, 400, "cursor_invalid"),
        ("GET", "/v1/status", {"headers": {"host": "evil.example"}}, 403, "host_foreign"),
        ("GET", "/v1/status", {"headers": {"origin": "http://evil"}}, 403, "origin_foreign"),
        ("GET", "/v1/status", {"headers": {"authorization": "Basic x"}}, 401, "unauthorized"),
        ("POST", "/v1/nodes/x/uncordon", {"headers": {"idempotency-key": "k" * 256}}, 400,
         "idempotency_key_too_long"),
    ],
)  # fmt: skip
async def test_a_problem(
    http: httpx.AsyncClient,
    method: str,
    path: str,
    request_parts: dict[str, Any],
    status: int,
    code: str,
) -> None:
    answer = await http.request(method, path, **request_parts)
    problem = msgspec.json.decode(answer.content, type=Problem)
    assert (answer.status_code, problem.status, problem.code) == (status, status, code)
    assert answer.headers["content-type"] == PROBLEM_MEDIA_TYPE
    assert problem.type == f"urn:hostler:problem:{code}"
    assert problem.detail
    assert "Traceback" not in answer.text


async def test_all_that_is_wrong_with_a_bundle_is_told(http: httpx.AsyncClient) -> None:
    answer = await http.post(
        "/v1/bundles", json={"bundle": "b", "pool": "P", "replicas": 0, "jobs": [{"name": "j"}]}
    )
    problem = msgspec.json.decode(answer.content, type=Problem)
    assert {error.path for error in problem.errors} == {"pool", "replicas", "jobs[0].run"}


async def test_a_method_that_is_not_taken_says_which_are(http: httpx.AsyncClient) -> None:
    answer = await http.put("/v1/bundles")
    assert {"GET", "POST"} <= set(answer.headers["allow"].replace(" ", "").split(","))


async def test_an_overloaded_line_says_when_to_come_again(tmp_path: Path) -> None:
    config = "pools: {p: {waiting_max: 2, tiers: [{name: t, kind: fixed}]}}"
    async with running(tmp_path, config=config) as lab, lab.http() as http:
        answers = [await http.post("/v1/leases", json={"pool": "p"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert answers[-1].json()["code"] == "overloaded"
    assert int(answers[-1].headers["retry-after"]) >= 1


async def test_a_server_whose_engine_has_stopped_says_so(tmp_path: Path) -> None:
    options = EngineOptions(store_url=MEMORY_URL, folder=tmp_path, server_url="http://localhost")
    engine = await assemble(options)
    links = AgentLinks(engine)
    app = create_app(engine, links, is_loopback=True)
    await engine.start()
    await engine.stop()
    transport = httpx.ASGITransport(app)  # type: ignore[arg-type]  # ASGI, by more precise types
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        answer = await http.get("/v1/nodes")
        assert (answer.status_code, answer.json()["code"]) == (503, "engine_stopped")
        assert int(answer.headers["retry-after"]) >= 1
        assert (await http.get("/readyz")).status_code == 503
        assert (await http.get("/healthz")).status_code == 200
