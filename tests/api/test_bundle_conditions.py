"""Submitting on conditions: as planned at a revision, unchanged since, and protected, over HTTP."""

from __future__ import annotations

import pytest

from hostler.client import ClientError
from hostler.wire.documents import BundleDocument
from tests.api.lab import Lab, a_bundle


def asking(capacity: int, more: str = "") -> BundleDocument:
    return a_bundle(
        f"{{bundle: b, pool: studio, jobs: [{{name: j, run: {{argv: [x]}},"
        f" requires: {{capacity: {capacity}}}}}]{more}}}"
    )


async def test_what_was_planned_is_applied_until_something_that_matters_changes(lab: Lab) -> None:
    async with lab.client() as client:
        plan = await client.plan_bundle(asking(1))
        assert [(one.outcome, one.node_id) for one in plan.replicas] == [("waiting", None)]
        made = await client.submit_bundle(asking(1), at=plan.revision)
        assert made.generation == 1
        plan = await client.plan_bundle(asking(2))
        node = await lab.agent("studio")
        with pytest.raises(ClientError) as refused:
            await client.submit_bundle(asking(2), at=plan.revision)
        assert (refused.value.status, refused.value.code) == (409, "plan_stale")
        assert (await client.bundle("b")).generation == 1
        plan = await client.plan_bundle(asking(2))
        assert [one.node_id for one in plan.replicas] == [node.node_id]
        assert (await client.submit_bundle(asking(2), at=plan.revision)).generation == 2


async def test_a_change_to_what_others_have_changed_is_refused(lab: Lab) -> None:
    async with lab.client() as client:
        seen = await client.submit_bundle(asking(1), if_generation=0)
        await client.submit_bundle(asking(2))
        with pytest.raises(ClientError) as refused:
            await client.submit_bundle(asking(3), if_generation=seen.generation)
        assert (refused.value.status, refused.value.code) == (409, "bundle_changed")
        now = await client.bundle("b")
        assert (await client.submit_bundle(asking(3), if_generation=now.generation)).generation == 3


async def test_what_must_be_protected_is_refused_with_what_would_hurt_it(lab: Lab) -> None:
    await lab.agent("studio")
    async with lab.client() as client:
        with pytest.raises(ClientError) as refused:
            await client.submit_bundle(asking(1, ", require_protected: true"))
        assert refused.value.status == 409
        assert "without node n-000001 there is no place for b/j/0" in str(refused.value)
        assert await client.bundles() == []


async def test_an_operators_labels_are_on_the_node_until_taken_off(lab: Lab) -> None:
    node = await lab.agent("studio")
    async with lab.client() as client:
        labelled = await client.label_node(node.node_id, {"rack": "r1", "disk": "ssd"})
        assert labelled.labels == {"rack": "r1", "disk": "ssd"}
        labelled = await client.label_node(node.node_id, {"rack": ""})
        assert (await client.node(node.node_id)).labels == labelled.labels == {"disk": "ssd"}
