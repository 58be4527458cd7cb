"""The OpenAPI document is sound, says what the server does, and nothing in it breaks the server."""

from __future__ import annotations

from typing import Any, TypeAlias

import httpx
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok

from hostler.api.app import create_openapi
from hostler.client import Client
from tests.api.lab import SLEEPER

SCHEMA = schemathesis.openapi.from_dict(create_openapi())

LONG = {"/v1/events", "/v1/allocations/{allocation_id}/logs"}
"""Streams; they have tests of their own."""
QUERIES = {
    "/v1/explain": {"about": "sleeper/main/0"},
    "/v1/life": {"about": "bundle/sleeper"},
}
NOT_THERE = ("/v1/bundles/{bundle_id}/rollout", "/v1/services/{name}")
"""What nothing in this server's configuration brings about."""

Operation: TypeAlias = schemathesis.APIOperation[Any, Any, Any, Any]

OPERATIONS: list[Operation] = [
    operation
    for found in SCHEMA.get_all_operations()
    if isinstance(found, Ok) and (operation := found.ok()).path not in LONG
]


def test_the_document_loads() -> None:
    assert len(OPERATIONS) > 30


def test_every_operation_has_words_and_an_id_of_its_own() -> None:
    told = [op for path in create_openapi()["paths"].values() for op in path.values()]
    assert all(op["summary"] and op["description"] for op in told)
    assert len({op["operationId"] for op in told}) == len(told)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: f"{op.method} {op.path}")
async def test_no_request_breaks_the_server(http: httpx.AsyncClient, operation: Operation) -> None:
    """Draws requests that fit the document, and sends them; every answer must fit it too."""
    cases: list[schemathesis.Case[Operation]] = []

    @given(case=operation.as_strategy())
    @settings(
        max_examples=12,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def draw(case: schemathesis.Case[Operation]) -> None:
        cases.append(case)

    draw()
    for case in cases:
        sent = case.as_transport_kwargs(base_url=str(http.base_url))
        sent.pop("cookies", None)
        headers = {
            name: value
            for name, value in dict(sent.pop("headers")).items()
            if name.lower() not in {"host", "user-agent"} and value.isprintable()
            and value.isascii()
        }  # fmt: skip
        answer = await http.request(sent.pop("method"), sent.pop("url"), headers=headers, **sent)
        assert answer.status_code < 500, (case, answer.text)
        said = operation.definition.raw["responses"]
        assert str(answer.status_code) in said, (case, answer.status_code, answer.text)


async def test_answers_fit_the_document(http: httpx.AsyncClient, client: Client) -> None:
    await client.submit_bundle(SLEEPER)
    await http.post("/v1/leases", json={"pool": "runners"})
    document = create_openapi()
    for path, methods in document["paths"].items():
        if "get" not in methods or path in LONG:
            continue
        concrete = (
            path.replace("{bundle_id}", "sleeper")
            .replace("{job}", "main")
            .replace("{index}", "0")
            .replace("{lease_id}", "l-000001")
            .replace("{name}", "studio")
        )
        if "{" in concrete or concrete.endswith("/logs"):
            continue
        answer = await http.get(concrete, params=QUERIES.get(path, {}))
        if path in NOT_THERE:
            assert answer.status_code == 404, (concrete, answer.text)
            continue
        assert answer.status_code == 200, (concrete, answer.text)
        content = methods["get"]["responses"]["200"]["content"]
        if "application/json" not in content or path == "/openapi.json":
            continue
        schema = {**content["application/json"]["schema"], "components": document["components"]}
        jsonschema_rs.validator_for(schema).validate(answer.json())
