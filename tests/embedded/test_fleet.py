"""A fleet in one process: the client's methods, the engine's semantics, and nothing left behind."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path

import pytest
import structlog

import hostler.embedded
from hostler.base.errors import Failed, Rejected
from hostler.client import Client, ClientError, LeaseRefused, Unreachable
from hostler.wire.documents import DocumentRejected
from hostler.wire.http import AcquireRequest, CreateTokenRequest, EventView
from tests.embedded.lab import fakes, ready_nodes
from tests.eventually import eventually, eventually_async
from tests.tidy.sources import ROOT


async def test_a_lease_runs_commands_in_a_fleet_in_memory() -> None:
    async with hostler.embedded.open(fakes()) as fleet:
        async with fleet.lease("runners", key="build-42", timeout_ms=20_000) as lease:
            done = await lease.run(["echo", "on", "${HOSTLER_NODE_ID}"])
            assert (done.status, done.stdout) == (0, f"on {lease.node_id}\n".encode())
            assert (await lease.run(["cat"], stdin=b"x" * 1_000_000)).stdout == b"x" * 1_000_000
            assert (await lease.run(["false"])).status == 1
        settled = await fleet.lease_view(lease.lease_id)
        assert (settled.outcome, settled.holder, settled.key) == ("healthy", "embedded", "build-42")


async def test_signals_reach_a_command_and_leaving_it_kills_it() -> None:
    async with (
        hostler.embedded.open(fakes()) as fleet,
        fleet.lease("runners", timeout_ms=20_000) as lease,
    ):
        async with lease.start(["sleep", "600"]) as command:
            await command.signal("SIGTERM")
            assert (await command.wait()).status == 143
        async with lease.start(["cat"], has_stdin=True):
            pass
        assert (await lease.run(["true"])).status == 0


async def test_a_refusal_is_what_a_server_says() -> None:
    async with hostler.embedded.open(fakes()) as fleet:
        with pytest.raises(ClientError) as unknown:
            await fleet.pool("nowhere")
        assert (unknown.value.status, unknown.value.code) == (404, "pool_not_found")
        nodes = [node.node_id for node in await ready_nodes(fleet)]
        with pytest.raises(LeaseRefused) as refused:
            async with fleet.lease("runners", timeout_ms=0, excluded_node_ids=nodes):
                raise AssertionError("there is no other")
        assert refused.value.code == "timed_out"


async def test_a_request_that_is_cancelled_leaves_the_line_and_no_node_is_spent() -> None:
    async with hostler.embedded.open(fakes(tier={"node_count_max": 1})) as fleet:
        (node,) = await ready_nodes(fleet)
        async with fleet.lease("runners", timeout_ms=20_000):
            waiting = asyncio.create_task(
                fleet.acquire(AcquireRequest(pool="runners", key="later", timeout_ms=600_000))
            )

            async def is_in_line() -> bool:
                return any(one.key == "later" for one in await fleet.leases())

            await eventually_async(is_in_line)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert not await is_in_line()
        async with fleet.lease("runners", timeout_ms=20_000) as lease:
            assert lease.node_id == node.node_id


async def test_nobody_gets_in_on_its_port_without_a_token() -> None:
    async with hostler.embedded.open(fakes()) as fleet:
        async with Client(fleet.url, retry_ms=0) as stranger:
            with pytest.raises(ClientError) as refused:
                await stranger.nodes()
            assert refused.value.status == 401
        made = await fleet.create_token(CreateTokenRequest(name="ui", role="viewer"))
        async with Client(fleet.url, token=made.secret, retry_ms=0) as viewer:
            assert (await viewer.status()).principal == "ui"


async def test_the_configuration_is_told_wrong_before_anything_begins() -> None:
    wrong = fakes(slots="many")
    with pytest.raises(DocumentRejected) as refused:
        async with hostler.embedded.open(wrong):
            raise AssertionError("it may not open")
    assert [one.path for one in refused.value.problems] == ["pools.runners.slots"]


async def test_a_file_is_read_again_and_values_replace_it(tmp_path: Path) -> None:
    file = tmp_path / "hostler.yaml"
    file.write_text("pools: {runners: {tiers: [{name: own, kind: fixed}]}}")
    async with hostler.embedded.open(file) as fleet:
        assert [pool.name for pool in await fleet.pools()] == ["runners"]
        file.write_text("pools: {runners: {slots: 3, tiers: [{name: own, kind: fixed}]}}")
        foreseen = await fleet.reload(is_dry_run=True)
        assert [change.path for change in foreseen.changes] == ["pools.runners.slots"]
        await fleet.reload()
        assert (await fleet.pool("runners")).slot_count == 3
        file.write_text("pools: [")
        with pytest.raises(DocumentRejected):
            await fleet.reload()
        await fleet.reload({"pools": {"runners": {"tiers": [{"name": "own", "kind": "fixed"}]}}})
        assert (await fleet.pool("runners")).slot_count == 1
        with pytest.raises(DocumentRejected):
            await fleet.reload({"pools": {"runners": {}}})
        # What was refused is not what is read again.
        assert (await fleet.reload_config()).changes == []


async def test_a_store_goes_on_with_the_fleet_and_its_machines(tmp_path: Path) -> None:
    async with hostler.embedded.open(fakes(), store=tmp_path / "fleet") as fleet:
        (before,) = await ready_nodes(fleet)
        seen = (await fleet.status()).event_seq
    async with hostler.embedded.open(
        fakes(), store=tmp_path / "fleet", ends_machines=True
    ) as fleet:
        (after,) = await ready_nodes(fleet)
        assert (after.node_id, after.machine_id) == (before.node_id, before.machine_id)
        assert (await fleet.status()).event_seq > seen
    async with hostler.embedded.open(fakes(warm=0), store=tmp_path / "fleet") as fleet:
        assert await fleet.nodes() == []


async def test_two_fleets_do_not_share_a_store(tmp_path: Path) -> None:
    async with hostler.embedded.open(fakes(warm=0), store=tmp_path):
        with pytest.raises(Rejected):
            async with hostler.embedded.open(fakes(), store=tmp_path):
                raise AssertionError("another has it")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(Rejected, match="cannot be the data folder"):
        async with hostler.embedded.open(fakes(), store=file):
            raise AssertionError("it is a file")


async def test_a_drain_ends_what_is_idle_and_a_reload_opens_again() -> None:
    async with hostler.embedded.open(fakes()) as fleet:
        await ready_nodes(fleet)
        async with fleet.lease("runners", timeout_ms=20_000) as lease:
            draining = asyncio.create_task(fleet.drain(deadline_ms=600_000))

            async def told() -> bool:
                await lease.heartbeat()
                return lease.retiring_at_ms is not None

            await eventually_async(told, what="word that the node is to go")
            with pytest.raises((ClientError, LeaseRefused)):
                await fleet.acquire(AcquireRequest(pool="runners", timeout_ms=0))
            await fleet.reload()
            await lease.heartbeat()
            assert lease.retiring_at_ms is None
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)
        held = await fleet.lease_view(lease.lease_id)
        assert held.outcome == "healthy"
        assert await fleet.drain(deadline_ms=0) == []
        assert await fleet.nodes() == []


async def test_what_is_still_held_at_the_end_is_revoked_and_its_machine_ends(
    tmp_path: Path,
) -> None:
    config = fakes()
    async with hostler.embedded.open(config, store=tmp_path, ends_machines=True) as fleet:
        held = await fleet.request_lease(AcquireRequest(pool="runners", wait_ms=20_000))
        assert held.phase == "held"
    async with hostler.embedded.open(fakes(warm=0), store=tmp_path) as fleet:
        assert (await fleet.lease_view(held.lease_id)).outcome == "revoked"
        assert await fleet.nodes() == []


async def test_machines_that_would_not_go_are_told_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hostler.embedded.fleet.STOP_MS", 200)
    with pytest.raises(Failed) as failure:
        async with hostler.embedded.open(fakes(tier={"options": {"stop": "1h"}})) as fleet:
            await ready_nodes(fleet)
    assert failure.value.code == "machines_left"
    assert "fake fake-" in str(failure.value.fields["machines"])


async def test_the_log_goes_to_the_programs_own(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = structlog.get_config()
    structlog.reset_defaults()
    try:
        async with hostler.embedded.open(fakes(warm=0)) as fleet:

            def fails(event: EventView) -> None:
                raise KeyError(event.kind)

            fleet.on_event(fails, after_seq=0)

            async def is_told() -> bool:
                return "listener_failed kind=" in caplog.text

            await eventually_async(is_told)
            assert "KeyError: " in caplog.text
    finally:
        structlog.configure(**before)


async def test_an_engine_that_has_failed_is_told_at_the_end(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="lost its store"):
        async with hostler.embedded.open(fakes(warm=0), store=tmp_path) as fleet:
            fleet._engine._end(Failed("store_lost", "the server has lost its store"))


def test_the_program_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "embedded.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(program, "docs/embedded.md", "exec"), {"__name__": "__main__"})
    assert re.search(r"^hello from n-\d+\nrunners \d+ ms\n$", capsys.readouterr().out)


async def test_a_closed_fleet_says_so() -> None:
    async with hostler.embedded.open(fakes(warm=0)) as fleet:
        pass
    with pytest.raises(Unreachable, match="closed"):
        await fleet.nodes()


async def test_events_join_a_snapshot_without_a_gap() -> None:
    async with hostler.embedded.open(fakes()) as fleet:
        await ready_nodes(fleet)
        async with fleet.lease("runners", timeout_ms=20_000) as lease:
            taken = await fleet.snapshot()
        (view,) = taken.leases
        assert (view.lease_id, taken.pools[0].name) == (lease.lease_id, "runners")
        assert lease.node_id in [node.node_id for node in taken.nodes]
        async for event in fleet.events(after_seq=taken.event_seq):
            assert event.seq > taken.event_seq
            if event.kind == "lease_settled":
                break


async def test_a_listener_hears_in_order_and_its_faults_harm_nobody() -> None:
    heard: list[EventView] = []
    threads: set[int] = set()

    def listener(event: EventView) -> None:
        threads.add(threading.get_ident())
        heard.append(event)
        raise ValueError(event.kind)

    async with hostler.embedded.open(fakes()) as fleet:
        kind = hostler.embedded.EventKind.LEASE_GRANTED
        listening = fleet.on_event(listener, kinds=[kind, "lease_settled"])
        for _ in range(3):
            async with fleet.lease("runners", timeout_ms=20_000):
                pass

        async def heard_all() -> bool:
            return len(heard) == 6

        await eventually_async(heard_all)
        assert [one.kind for one in heard] == ["lease_granted", "lease_settled"] * 3
        assert threading.get_ident() not in threads
        await listening.close()
        assert listening.failure_count in (5, 6)  # the last one's may be told to nobody
        with pytest.raises(Rejected, match="did you mean lease_granted"):
            fleet.on_event(listener, kinds=["lease_grantd"])


async def test_listeners_that_block_hold_nobody_up() -> None:
    free = threading.Event()
    heard: list[int] = []

    async def later(event: EventView) -> None:
        heard.append(event.seq)

    def block(_: EventView) -> None:
        free.wait()

    async with hostler.embedded.open(fakes()) as fleet:
        for _ in range(40):  # more than the loop has threads for all of us
            fleet.on_event(block)
        fleet.on_event(later, kinds=["lease_settled"])
        for _ in range(3):
            async with fleet.lease("runners", timeout_ms=20_000):
                pass

        async def heard_all() -> bool:
            return len(heard) == 3

        await eventually_async(heard_all)
        await fleet.reload()  # reads in a thread
        free.set()


async def test_a_listener_that_is_too_slow_goes_on_with_what_is_kept() -> None:
    config = fakes(warm=0)
    config["fleet"]["retention"] = {"events_max": 1}
    free, heard = asyncio.Event(), []

    async def listener(event: EventView) -> None:
        await free.wait()
        heard.append(event.kind)

    async with hostler.embedded.open(config) as fleet:
        listening = fleet.on_event(listener, after_seq=0)
        listening._position = -5  # as one that is far behind what is kept
        listening._skip(3)
        assert (listening.position, listening.skipped_count) == (2, 7)
        free.set()


def test_a_program_that_blocks_has_the_same() -> None:
    heard: list[str] = []
    with hostler.embedded.open_sync(fakes()) as fleet:
        listening = fleet.on_event(lambda event: heard.append(event.kind), kinds=["lease_settled"])
        with fleet.lease("runners", key="a", timeout_ms=20_000) as lease:
            assert lease.run(["echo", "hello"]).stdout == b"hello\n"
        assert eventually(lambda: heard) == ["lease_settled"]
        listening.close()
        assert fleet.snapshot().pools[0].name == "runners"
        assert fleet.reload(is_dry_run=True).changes == []
        past = [event.kind for event in fleet.events(after_seq=0, follow=False)]
        assert past[0] == "server_started"
        assert fleet.drain(deadline_ms=0) == []


def test_an_error_of_the_program_comes_through_and_ends_the_fleet() -> None:
    with (
        pytest.raises(KeyError, match="mine"),
        hostler.embedded.open_sync(fakes(warm=0)) as fleet,
    ):
        raise KeyError("mine")
    with pytest.raises(Rejected, match="closed"):
        fleet.nodes()
