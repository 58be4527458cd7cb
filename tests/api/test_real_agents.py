"""A server and real agents: work runs, logs flow, leases run commands, a restart goes unnoticed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from hostler.client import ClientError, LeaseLost, LeaseRefused
from hostler.model.token import Role
from hostler.wire.http import AcquireRequest, AllocationView
from tests.api.lab import CONFIG, Lab, RealAgent, a_bundle, begin, running
from tests.eventually import eventually_async

pytestmark = pytest.mark.e2e

TALKER = a_bundle(
    """
bundle: talker
pool: studio
jobs:
  - name: main
    run:
      argv: [sh, -c, "echo hello from $HOSTLER_REPLICA; while :; do echo tick; sleep 0.1; done"]
"""
)


async def ready_allocation(lab: Lab, bundle: str) -> AllocationView:
    async with lab.client() as client:

        async def ready() -> AllocationView | None:
            found = await client.allocations(bundle=bundle)
            return next((one for one in found if one.phase == "ready"), None)

        one = await eventually_async(ready, what=f"a ready allocation of {bundle}")
        assert one is not None
        return one


async def test_a_bundle_runs_and_its_log_can_be_followed(tmp_path: Path) -> None:
    async with running(tmp_path) as lab, lab.client() as client:
        node = await lab.agent("studio")
        await client.submit_bundle(TALKER)
        allocation = await ready_allocation(lab, "talker")
        assert allocation.node_id == node.node_id
        text = b""
        async for chunk in client.logs("talker/main/0", follow=True):
            text += chunk
            if text.count(b"tick") >= 5:
                break
        assert text.startswith(b"hello from talker/main/0\n")
        whole = b"".join([chunk async for chunk in client.logs(allocation.allocation_id)])
        assert whole.startswith(text[: len(whole)])

        await client.delete_bundle("talker")

        async def gone() -> bool:
            return not await client.bundles()

        await eventually_async(gone, what="the bundle to be gone")


async def test_commands_run_under_a_lease(tmp_path: Path) -> None:
    async with running(tmp_path) as lab, lab.client() as client:
        node = await lab.agent("runners")
        async with client.lease("runners", key="build-42", timeout_ms=10_000) as lease:
            assert lease.node_id == node.node_id
            told: list[tuple[str, bytes]] = []
            result = await lease.run(
                ["sh", "-c", "cat; echo oops >&2; echo $MARK; exit 3"],
                env={"MARK": "here"},
                stdin=b"through the wire\n" * 10_000,
            )
            assert (result.exit_code, result.signal, result.status) == (3, None, 3)
            assert result.stdout == b"through the wire\n" * 10_000 + b"here\n"
            assert result.stderr == b"oops\n"
            await lease.run(["echo", "hi"], on_output=lambda name, data: told.append((name, data)))
            assert told == [("stdout", b"hi\n")]
            stale = client.adopt(msgspec.structs.replace(lease.view, epoch=99))
            with pytest.raises(ClientError, match="has epoch"):
                await stale.run(["true"])
        settled = await client.lease_view(lease.lease_id)
        assert (settled.phase, settled.outcome) == ("settled", "healthy")
        assert await client.audit(subject=lease.lease_id) == []


async def test_a_command_under_the_lease_of_somebody_else_is_in_the_audit(tmp_path: Path) -> None:
    async with running(tmp_path) as lab:
        await lab.agent("runners")
        runner = lab.client(await lab.token("runner", Role.LESSEE))
        operator = lab.client(await lab.token("operator", Role.OPERATOR))
        async with runner.lease("runners", timeout_ms=10_000) as lease:
            result = await operator.adopt(lease.view).run(["true"])
            assert result.exit_code == 0
            (entry,) = await operator.audit(subject=lease.lease_id)
        assert (entry.principal, entry.action) == ("operator", "run_command")
        assert entry.about["node"] == lease.node_id
        await runner.close()
        await operator.close()


async def test_a_lease_that_is_revoked_ends_its_command(tmp_path: Path) -> None:
    async with running(tmp_path) as lab, lab.client() as client:
        await lab.agent("runners")
        held = client.lease("runners", timeout_ms=10_000)
        lease = await held.__aenter__()
        running_command = asyncio.create_task(lease.run(["sleep", "1000"]))
        await lease.run(["true"])
        await client.revoke_lease(lease.lease_id, "enough")
        with pytest.raises(LeaseLost, match="revoked"):
            await running_command
        await held.__aexit__(None, None, None)
        assert (await client.lease_view(lease.lease_id)).outcome == "revoked"


async def test_a_lease_is_taken_up_by_its_first_command(tmp_path: Path) -> None:
    async with running(tmp_path) as lab, lab.client() as client:
        await lab.agent("runners")
        asked = AcquireRequest(pool="runners", ack_ms=300, lease_ms=60_000, wait_ms=10_000)
        view = await client.request_lease(asked)
        assert (view.phase, view.is_acknowledged) == ("held", False)
        lease = client.adopt(view)
        result = await lease.run(["sh", "-c", "sleep 1; echo $HOSTLER_LEASE_EPOCH"])
        assert result.stdout == f"{view.epoch}\n".encode()
        assert (await client.lease_view(view.lease_id)).is_acknowledged
        await lease.release()


async def test_a_lease_that_nobody_takes_up_leaves_its_node_as_it_was(tmp_path: Path) -> None:
    async with running(tmp_path) as lab, lab.client() as client:
        node = await lab.agent("runners")
        asked = AcquireRequest(pool="runners", ack_ms=50, wait_ms=10_000)
        lost = await client.request_lease(asked)

        async def is_over() -> bool:
            return (await client.lease_view(lost.lease_id)).outcome == "unacknowledged"

        await eventually_async(is_over, what="the lease to be taken back")
        async with client.lease("runners", ack_ms=5_000, timeout_ms=10_000) as lease:
            assert lease.node_id == node.node_id
            assert lease.view.is_acknowledged


async def test_a_holder_is_told_that_its_node_goes_and_may_stay_within_the_bound(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as lab, lab.client() as client:
        node = await lab.agent("runners")
        async with client.lease("runners", timeout_ms=10_000) as lease:
            await client.drain_node(node.node_id, deadline_ms=60_000)
            await lease.heartbeat()
            assert lease.retiring_at_ms is not None
            with pytest.raises(ClientError) as refused:
                await lease.extend(1_000)
            assert refused.value.code == "extension_invalid"


async def test_a_slot_is_cleaned_up_between_two_leases_and_a_failure_closes_the_node(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "cleaned"
    scrub = ["/bin/sh", "-c", f"echo noise; echo $HOSTLER_LEASE_ID >>{mark}; test -w {mark}.ok"]
    (tmp_path / "cleaned.ok").touch()
    config = CONFIG.replace("  runners:\n", f"  runners:\n    clean_up: {json.dumps(scrub)}\n")
    async with running(tmp_path, config=config) as lab, lab.client() as client:
        node = await lab.agent("runners")
        async with client.lease("runners", timeout_ms=10_000) as first:
            await first.run(["true"])
        async with client.lease("runners", timeout_ms=10_000) as second:
            assert mark.read_text().split() == [first.lease_id]
            (tmp_path / "cleaned.ok").unlink()

        async def is_closed() -> bool:
            return (await client.node(node.node_id)).cordon is not None

        await eventually_async(is_closed, what="the node to be cordoned")
        assert mark.read_text().split() == [first.lease_id, second.lease_id]
        result = (await client.node(node.node_id)).last_clean_up
        assert result is not None
        assert (result.lease_id, result.is_success) == (second.lease_id, False)
        assert "exit code 1" in result.detail


async def test_nothing_free_is_said_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as lab, lab.client() as client:
        with pytest.raises(LeaseRefused) as refused:
            async with client.lease("runners", timeout_ms=0):
                pass
        assert refused.value.code == "timed_out"


async def test_a_server_restart_disturbs_nobody(tmp_path: Path) -> None:
    store_url = f"sqlite:///{tmp_path / 'fleet.db'}"
    lab = await begin(tmp_path, store_url=store_url)
    try:
        await lab.agent("studio")
        async with lab.client() as client:
            await client.submit_bundle(TALKER)
        before = await ready_allocation(lab, "talker")
        port = lab.listening.port
        await lab.stop()
        again = await begin(tmp_path, store_url=store_url, port=port)
        again.agents = lab.agents
        lab = again
        async with lab.client() as client:

            async def connected() -> bool:
                return all(node.is_connected for node in await client.nodes())

            await eventually_async(connected, what="the agent to be back")
            (after,) = await client.allocations(bundle="talker")
            assert (after.allocation_id, after.started_at_ms, after.phase) == (
                before.allocation_id,
                before.started_at_ms,
                "ready",
            )
            assert not [n for n in await client.nodes() if n.health != "live"]
    finally:
        for agent in lab.agents:
            await agent.stop()
        await lab.stop()


async def test_an_agent_with_a_wrong_token_is_told_so(tmp_path: Path) -> None:
    async with running(tmp_path) as lab:
        agent = RealAgent(tmp_path / "stranger", lab.url)
        await agent.start(join_token="hj_n-000001.1.nonsense")
        assert agent.process is not None
        assert await agent.process.wait() == 2
