"""Metrics: every one of the table is exposed, none besides, and what is counted comes out even.

Scenarios of spec/placement.md 6.14. Elsewhere: S-172 to S-178 (dry runs, admission, validation) in
tests/core/placing; S-180 (one precedence of settings) does not apply: a tunable has one place.
"""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from hostler.api.metrics.table import METRICS, MetricKind
from tests.api.lab import SLEEPER, Lab
from tests.eventually import eventually_async

DOCS = Path(__file__).parents[2] / "docs"

ID = re.compile(r"^(n|a|l|t|u)-\d{6,}$")


async def scrape(lab: Lab) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return every sample by name and labels."""
    async with lab.http() as http:
        text = (await http.get("/metrics")).text
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


async def families(lab: Lab) -> dict[str, str]:
    """Return the type of every metric that is exposed."""
    async with lab.http() as http:
        text = (await http.get("/metrics")).text
    return dict(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))


async def test_what_is_exposed_is_the_table(lab: Lab) -> None:
    told = await families(lab)
    assert told == {metric.shown: metric.kind.value for metric in METRICS.values()}


def test_every_metric_is_documented() -> None:
    page = (DOCS / "metrics.md").read_text()
    for metric in METRICS.values():
        labels = ", ".join(metric.labels)
        assert f"| `{metric.shown}` | {metric.kind.value} | {labels} |" in page


def test_every_metric_that_the_documents_name_is_there() -> None:
    shown = {metric.shown for metric in METRICS.values()}
    parts = {f"{name}{end}" for name in shown for end in ("", "_bucket", "_sum", "_count")}
    for page in DOCS.rglob("*.md"):
        for name in re.findall(r"`(hostler_[a-z_]+)[`{]", page.read_text()):
            assert name in parts, (page, name)


async def test_labels_are_names_and_never_ids(lab: Lab) -> None:
    await lab.agent("studio")
    async with lab.client() as client:
        await client.submit_bundle(SLEEPER)
        async with lab.http() as http:
            await http.post("/v1/leases", json={"pool": "runners", "timeout_ms": 60_000})
            await http.get("/v1/nodes", headers={"authorization": "Bearer wrong"})
    for name, samples in (await scrape(lab)).items():
        for labels in samples:
            assert not any(ID.match(value) for _, value in labels), (name, labels)


async def test_a_bundle_is_counted_from_its_place_to_its_end(lab: Lab) -> None:
    await lab.agent("studio")

    async def count(name: str, **labels: str) -> float:
        return (await scrape(lab)).get(name, {}).get(tuple(sorted(labels.items())), 0)

    async with lab.client() as client:
        await client.submit_bundle(SLEEPER)
        await eventually_async(lambda: count("hostler_replicas", phase="placed"))
        await eventually_async(lambda: count("hostler_time_to_ready_seconds_count", band="silver"))
        place = {"pool": "studio", "band": "silver"}
        assert await count("hostler_placements_total", outcome="started", **place) == 1
        assert await count("hostler_placements_total", outcome="attempted", **place) == 1
        assert await count("hostler_events_total", kind="replica_ready") == 1
        assert await count("hostler_node_boot_seconds_count", pool="studio", tier="fixed") == 1
        await client.delete_bundle("sleeper")
        await eventually_async(
            lambda: count("hostler_allocations_ended_total", cause="stopped", band="silver")
        )
        assert await count("hostler_bundles", phase="active") == 0


async def test_waiting_and_refusals_are_told_by_reason(lab: Lab) -> None:
    async with lab.client() as client, lab.http() as http:
        await client.submit_bundle(SLEEPER)
        await http.post("/v1/leases", json={"pool": "runners", "timeout_ms": 60_000})
        await http.get("/v1/nodes", headers={"authorization": "Bearer wrong"})
    found = await scrape(lab)
    assert sum(found["hostler_replicas_waiting"].values()) == 1
    assert sum(found["hostler_leases_waiting"].values()) == 1
    assert all(value for labels in found["hostler_replicas_waiting"] for _, value in labels)
    assert found["hostler_requests_refused_total"] == {(("code", "unauthorized"),): 1}


def test_kinds_are_those_that_prometheus_has() -> None:
    assert {kind.value for kind in MetricKind} == {"gauge", "counter", "histogram"}
