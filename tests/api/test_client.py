"""The Python client: patient with a server that restarts, and the same when it blocks."""

from __future__ import annotations

import asyncio
import gc
import inspect
from pathlib import Path

import pytest

from hostler.client import (
    Client,
    ClientError,
    HeldLease,
    LeaseRefused,
    SyncClient,
    SyncLease,
    Unreachable,
)
from hostler.embedded import Fleet, SyncFleet
from hostler.model.token import Role
from hostler.wire.documents import BundleDocument
from hostler.wire.http import AcquireRequest, CreateTokenRequest
from tests.api.lab import SLEEPER, Lab, a_bundle, begin
from tests.eventually import eventually_async


def numbered(number: int) -> BundleDocument:
    return a_bundle(f"{{bundle: b{number}, pool: studio, jobs: [{{name: j, run: {{argv: [x]}}}}]}}")


async def test_events_are_neither_lost_nor_doubled_by_a_restart(tmp_path: Path) -> None:
    store_url = f"sqlite:///{tmp_path / 'fleet.db'}"
    lab = await begin(tmp_path, store_url=store_url)
    port = lab.listening.port
    seen: list[int] = []
    async with lab.client(retry_ms=30_000) as client:
        await client.submit_bundle(numbered(1))

        async def follow() -> None:
            async for event in client.events(after_seq=0):
                seen.append(event.seq)
                if event.about.get("bundle") == "b2" and event.kind == "bundle_submitted":
                    return

        following = asyncio.create_task(follow())

        async def has_some() -> bool:
            return len(seen) >= 3

        await eventually_async(has_some)
        await lab.stop()
        lab = await begin(tmp_path, store_url=store_url, port=port)
        await client.submit_bundle(numbered(2))
        async with asyncio.timeout(30):
            await following
        await lab.stop()
    assert seen == list(range(1, len(seen) + 1))


async def test_a_request_waits_for_a_server_that_restarts(tmp_path: Path) -> None:
    store_url = f"sqlite:///{tmp_path / 'fleet.db'}"
    lab = await begin(tmp_path, store_url=store_url)
    port = lab.listening.port
    async with lab.client(retry_ms=30_000) as client:
        await client.submit_bundle(numbered(1))
        await lab.stop()
        asking = asyncio.create_task(client.bundles())
        await asyncio.sleep(0)
        lab = await begin(tmp_path, store_url=store_url, port=port)
        assert [bundle.bundle_id for bundle in await asking] == ["b1"]
        await lab.stop()


async def test_patience_ends(lab: Lab) -> None:
    async with lab.client(retry_ms=200) as client:
        await lab.stop()
        with pytest.raises(Unreachable, match="is `hostler server` running there"):
            await client.status()
        with pytest.raises(Unreachable):
            await anext(aiter(client.events()))


async def test_whoever_gives_up_waiting_leaves_the_line(lab: Lab) -> None:
    async with lab.client() as client:
        told: list[str | None] = []
        waiting = asyncio.create_task(
            client.acquire(
                AcquireRequest(pool="runners", timeout_ms=60_000),
                on_waiting=lambda view: told.append(view.reason),
            )
        )

        async def is_waiting() -> bool:
            return bool(told)

        await eventually_async(is_waiting)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await client.leases() == []
        (left,) = await client.leases(include_ended=True)
        assert (left.phase, left.reason) == ("refused", "cancelled")


async def test_something_else_than_a_server_is_said_plainly() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Client(f"http://127.0.0.1:{port}", retry_ms=0) as client:
        with pytest.raises(ClientError, match="not from a Hostler server") as error:
            await client.status()
    assert error.value.code == "unexpected_answer"


async def test_the_blocking_client_does_the_same(lab: Lab) -> None:
    admin = await lab.token("root", Role.ADMIN)

    def work() -> None:
        with SyncClient(lab.url, token=admin, retry_ms=0) as client:
            assert client.status().principal == "root"
            assert client.plan_bundle(SLEEPER).is_accepted
            assert client.submit_bundle(SLEEPER).bundle_id == "sleeper"
            assert [one.bundle_id for one in client.bundles()] == ["sleeper"]
            assert client.replica("sleeper/main/0").phase == "pending"
            found = client.explain("sleeper/main/0", given=["capacity=1"])
            assert found.reasons[0].reason == "no_capacity"
            assert found.rerun is not None
            past = client.explain("sleeper/main/0", at_revision=found.decisions[0].revision)
            assert past.rerun is not None
            assert past.rerun.is_reproduced
            (group,) = client.pending().groups
            assert (group.count, group.reason) == (1, "no_capacity")
            assert [one.name for one in client.pools()] == ["runners", "studio"]
            assert client.windows(pool="studio") == []
            assert client.maintenance() == []
            windows = {each.window for each in client.windows(pool="runners")}
            assert windows == {"", "day"}
            assert client.retry_pool("runners").name == "runners"
            assert client.nodes() == []
            made = client.create_token(CreateTokenRequest(name="ci", role="lessee"))
            assert client.revoke_token(made.token.token_id).is_revoked
            kinds = [event.kind for event in client.events(after_seq=0, follow=False)]
            assert {"bundle_submitted", "token_revoked"} <= set(kinds)
            with pytest.raises(LeaseRefused), client.lease("runners", timeout_ms=0):
                pass
            with pytest.raises(ClientError) as missing:
                client.bundle("nope")
            assert missing.value.status == 404
            # Somebody who stops reading in the middle leaves nothing behind.
            for event in client.events(after_seq=0):
                assert event.seq == 1
                break
            assert client.delete_bundle("sleeper").bundle_id == "sleeper"

    await asyncio.to_thread(work)


async def test_what_is_left_in_the_middle_ends_with_the_blocking_client(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    def work() -> None:
        with SyncClient(lab.url, retry_ms=0) as client:
            client.submit_bundle(SLEEPER)
            left = client.events(after_seq=0)
            assert next(left).seq == 1
        # As when an error keeps the iterator alive until it has been told.
        del left
        gc.collect()

    await asyncio.to_thread(work)
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


async def test_a_plan_touches_nothing_and_says_what_would_come_of_it(lab: Lab) -> None:
    async with lab.client() as client:
        plan = await client.plan_lease(AcquireRequest(pool="nowhere"))
        assert (plan.phase, plan.code, plan.can_acquire) == ("refused", "pool_not_found", False)
        plan = await client.plan_lease(AcquireRequest(pool="runners", timeout_ms=1_000))
        assert (plan.phase, plan.position, plan.can_acquire) == ("waiting", 0, False)
        assert await client.leases(include_ended=True) == []


def test_whatever_waits_has_a_twin_that_blocks() -> None:
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(Client) - public(SyncClient) == set()
    # A command whose input and output one handles oneself needs a loop.
    assert public(HeldLease) - public(SyncLease) == {"start", "broken"}
    assert public(Fleet) - public(SyncFleet) == set()
    assert inspect.signature(SyncClient.nodes) == inspect.signature(Client.nodes)
    assert SyncClient.nodes.__doc__ == Client.nodes.__doc__
