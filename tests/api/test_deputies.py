"""Machines without an agent: the server is their agent, and leases on them are like any other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hostler.api import limits
from hostler.client import ClientError
from hostler.wire.http import NodeView
from tests.api.lab import Lab, a_bundle, begin, running
from tests.eventually import eventually_async

CONFIG = """
fleet:
  timing: {heartbeat: 200ms, suspect_after: 2s, fence_after: 20s, lost_after: 40s}
pools:
  runners:
    warm: 1
    tiers:
      - name: fakes
        kind: elastic
        provider: fake
        node_count_max: 3
        offers: [{name: small, shape: {capacity: 2, cores: 2}}]
"""


@pytest.fixture
async def fakes(tmp_path: Path) -> AsyncIterator[Lab]:
    async with running(tmp_path, config=CONFIG) as lab:
        yield lab


async def ready_nodes(lab: Lab, count: int = 1) -> list[NodeView]:
    async with lab.client() as client:

        async def ready() -> list[NodeView] | None:
            nodes = await client.nodes(pool="runners")
            up = [one for one in nodes if one.phase == "ready" and one.is_connected]
            return up if len(up) >= count else None

        found = await eventually_async(ready, what=f"{count} ready nodes")
        assert found is not None
        return found


async def test_a_machine_without_an_agent_becomes_ready_and_is_leased(fakes: Lab) -> None:
    (node,) = await ready_nodes(fakes)
    async with fakes.client() as client:
        async with client.lease("runners", timeout_ms=10_000) as lease:
            assert lease.node_id == node.node_id
            result = await lease.run(["echo", "hello from", "${HOSTLER_NODE_ID}"])
            assert (result.status, result.stdout) == (0, f"hello from {node.node_id}\n".encode())
            fed = await lease.run(["cat"], stdin=b"x" * 1_000_000)
            assert fed.stdout == b"x" * 1_000_000
            assert (await lease.run(["false"])).status == 1
            assert (await lease.run(["make"])).status == 127
        settled = await client.lease_view(lease.lease_id)
        assert (settled.phase, settled.outcome) == ("settled", "healthy")


async def test_a_signal_reaches_a_command_in_a_machine_without_an_agent(fakes: Lab) -> None:
    await ready_nodes(fakes)
    async with fakes.client() as client, client.lease("runners", timeout_ms=10_000) as lease:
        async with lease.start(["sleep", "600"]) as command:
            await command.signal("SIGTERM")
            result = await command.wait()
        assert result.status == 143


async def test_a_server_restart_takes_machines_without_agents_over(tmp_path: Path) -> None:
    store_url = f"sqlite:///{tmp_path / 'fleet.db'}"
    lab = await begin(tmp_path, config=CONFIG, store_url=store_url)
    try:
        (before,) = await ready_nodes(lab)
        await lab.stop()
        lab = await begin(tmp_path, config=CONFIG, store_url=store_url)
        (after,) = await ready_nodes(lab)
        assert after.node_id == before.node_id
        async with lab.client() as client, client.lease("runners", timeout_ms=10_000) as lease:
            assert (await lease.run(["true"])).status == 0
    finally:
        await lab.stop()


async def test_a_machine_that_stops_answering_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MACHINE_PROBE_EVERY_MS", 50)
    async with running(tmp_path, config=CONFIG) as lab:
        (node,) = await ready_nodes(lab)
        for file in (tmp_path / "providers/fake/machines").glob("*.json"):
            file.unlink()
        async with lab.client() as client:

            async def is_replaced() -> bool:
                ready = [n.node_id for n in await client.nodes() if n.phase == "ready"]
                return ready != [] and node.node_id not in ready

            # Its link goes down, the provider is asked and says gone, and the pool makes another.
            await eventually_async(is_replaced, what="the node to be replaced")


async def test_a_bundle_for_machines_without_an_agent_is_refused_with_the_reason(
    fakes: Lab,
) -> None:
    (node,) = await ready_nodes(fakes)
    assert not node.has_agent
    bundle = a_bundle("{bundle: b, pool: runners, jobs: [{name: main, run: {argv: [sleep, '9']}}]}")
    async with fakes.client() as client:
        with pytest.raises(ClientError, match="take leases and no jobs"):
            await client.submit_bundle(bundle)


async def test_what_runs_is_ended_with_its_lease(fakes: Lab) -> None:
    await ready_nodes(fakes)
    async with fakes.client() as client:
        held = client.lease("runners", timeout_ms=10_000)
        lease = await held.__aenter__()
        sleeping = asyncio.create_task(lease.run(["sleep", "600"]))
        await lease.run(["true"])
        await client.revoke_lease(lease.lease_id, "enough")
        with pytest.raises(Exception, match="revoked"):
            await sleeping
        with pytest.raises(ClientError):
            await lease.run(["true"])
        await held.__aexit__(None, None, None)


NEVER_BOOTS = CONFIG.replace(
    "provider: fake",
    "provider: fake\n        boot: 1s\n"
    '        options: {boot: 10m, log: "token: hunter2\\nno disk"}',
)


async def test_a_machine_that_does_not_boot_leaves_what_it_wrote(tmp_path: Path) -> None:
    async with running(tmp_path, config=NEVER_BOOTS) as lab, lab.client() as client:

        async def retired() -> NodeView | None:
            nodes = await client.nodes(pool="runners", include_retired=True)
            return next((node for node in nodes if node.phase == "retired"), None)

        node = await eventually_async(retired, what="a failed boot")
        assert node is not None
        assert node.launch_failure is not None
        assert node.launch_failure.code == "boot_timeout"
        assert node.boot_log.startswith("token: [redacted]\nno disk\n")
        assert "has not booted yet" in node.boot_log


async def test_a_lease_may_say_which_labels_its_node_must_have(fakes: Lab) -> None:
    (node,) = await ready_nodes(fakes)
    async with fakes.client() as client:
        await client.label_node(node.node_id, {"rack": "a"})
        async with client.lease("runners", selector="rack in (a, b), !slow") as lease:
            assert lease.node_id == node.node_id
            view = await client.lease_view(lease.lease_id)
            assert view.selector == "!slow, rack in (a, b)"
        for selector, code in (("rack=c", "node_labels"), ("rack=", "selector_invalid")):
            with pytest.raises(ClientError) as refused:
                async with client.lease("runners", selector=selector):
                    pass
            assert refused.value.code == code
