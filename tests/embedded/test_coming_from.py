"""`docs/coming-from.md`, leasing: each name is there, and does what the page says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import hostler.embedded
from hostler.api import limits
from hostler.base.ids import MachineId
from hostler.client import ClientError, LeaseRefused, calls
from hostler.embedded import Fleet
from hostler.ports.commands import MachineFound
from hostler.ports.provider import (
    CapacityUnavailable,
    LaunchRequest,
    Machine,
    ProviderContext,
    ProviderKind,
    Throttled,
)
from hostler.providers.fake.provider import PROVIDER, FakeProvider
from hostler.wire.documents import DocumentRejected
from hostler.wire.http import AcquireRequest, EventView, LeaseView, RequirementView
from tests.embedded.lab import fakes, ready_nodes
from tests.embedded.names import exists, names_by_table
from tests.eventually import eventually_async
from tests.tidy.sources import ROOT

TABLES = names_by_table(ROOT / "docs" / "coming-from.md", "Leasing")


def test_every_name_of_ours_exists() -> None:
    assert list(TABLES) == [
        "Settings",
        "Asking, and the lease",
        "Methods",
        "Refusals and errors",
        "Events",
    ]
    missing = [name for names in TABLES.values() for name in names if not exists(name)]
    assert missing == []
    assert not exists("pools.nowhere")
    assert not exists("Fleet.nowhere")
    assert not exists("nothing_of_ours")


# -- settings ------------------------------------------------------------------------------------

CONFIG: dict[str, Any] = {
    "fleet": {
        "timing": {"list_every": "30s", "heartbeat": "200ms"},
        "spend": {"time_zone": "Europe/Berlin"},
    },
    "pools": {
        "runners": {
            "enabled": True,
            "min": 1,
            "warm": 1,
            "node_count_max": 4,
            "slots": 2,
            "packing": "pack",
            "age_max": "1h",
            "rollout": {"surge": 1},
            "idle": "5m",
            "lease": "10m",
            "lease_max": "1h",
            "retire_notice": "30s",
            "retire_extension_max": "1m",
            "leases_per_key_max": 2,
            "windows": [
                {
                    "name": "day",
                    "time_zone": "Europe/Berlin",
                    "days": ["daily"],
                    "start": "08:00",
                    "end": "18:00",
                    "warm": 2,
                }
            ],
            "tiers": [
                {
                    "name": "fakes",
                    "kind": "elastic",
                    "provider": "fake",
                    "boot": "30s",
                    "node_count_max": 3,
                    "options": {"launch": "10ms"},
                    "offers": [{"name": "small", "shape": {"capacity": 2, "cores": 2}}],
                }
            ],
        }
    },
    "budgets": {
        "all": {
            "daily": {"node_time": "100h"},
            "monthly": {"node_time": "500h"},
            "lifetime": {"node_time": "9000h"},
            "concurrent": {"nodes": 4},
        }
    },
}


def has_set(config: Any, path: list[str]) -> bool:
    if isinstance(config, list):
        return any(has_set(each, path) for each in config)
    if not path:
        return True
    return isinstance(config, dict) and path[0] in config and has_set(config[path[0]], path[1:])


async def test_settings() -> None:
    flat = {
        **CONFIG,
        "pools": CONFIG["pools"]["runners"],
        "budgets": CONFIG["budgets"]["all"],
    }
    settings = [name for name in TABLES["Settings"] if name[0].islower()]
    assert [name for name in settings if not has_set(flat, name.split("."))] == []
    async with hostler.embedded.open(CONFIG) as fleet:
        pool = await fleet.pool("runners")
        assert (pool.is_enabled, pool.slot_count, pool.lease_ms_max) == (True, 2, 3_600_000)
        assert (pool.node_count_min, pool.node_count_max, pool.age_ms_max) == (1, 4, 3_600_000)
        assert {line.quantity for line in await fleet.budgets()} >= {"node_time", "nodes"}
    wrong = {"pools": {"runners": {"tiers": [{"name": "a", "kind": "elastic", "max": 3}]}}}
    with pytest.raises(DocumentRejected) as refused:
        async with hostler.embedded.open(wrong):
            raise AssertionError("not with these")
    assert len(refused.value.problems) > 1  # everything that is wrong, at once


# -- asking, the lease, and methods --------------------------------------------------------------


async def test_asking_and_the_lease(tmp_path: Path) -> None:
    asked = {
        "key": "issue-1",
        "labels": {"slot": "0"},
        "requires": RequirementView(),
        "affinity_node_id": None,
        "affinity_lease_id": None,
        "timeout_ms": 20_000,
        "priority": 1,
        "excluded_node_ids": [],
        "ack_ms": 10_000,
        "lease_ms": 60_000,
        "share": "same_key",
    }
    told = [
        name.partition(".")[2]
        for table in ("Settings", "Asking, and the lease")
        for name in TABLES[table]
        if name.startswith("AcquireRequest.")
    ]
    assert set(asked) == set(told)
    async with hostler.embedded.open(fakes(slots=2)) as fleet:
        async with fleet.lease("runners", **asked) as lease:  # type: ignore[arg-type]  # as written
            await lease.heartbeat()
            view, node = lease.view, await fleet.node(lease.node_id)
            assert view.epoch == node.epoch or view.epoch > 0
            assert view.granted_at_ms is not None
            assert view.expires_at_ms is not None
            assert view.expires_at_ms >= view.granted_at_ms + 60_000
            ran = await lease.run(["echo", "${HOSTLER_LEASE_EPOCH}"])
            assert int(ran.stdout) == view.epoch
            assert lease.retiring_at_ms is None
            lease.poison("it smells of smoke")
        settled = await fleet.lease_view(lease.lease_id)
        assert (settled.outcome, settled.outcome_detail) == ("poison", "it smells of smoke")
        again = await fleet.release_lease(lease.lease_id)
        assert again.outcome == "poison"  # settled once
        async with fleet.lease("runners", key="next", timeout_ms=20_000) as other:
            assert other.node_id != lease.node_id


async def test_methods() -> None:
    async with hostler.embedded.open(fakes()) as fleet:
        (node,) = await ready_nodes(fleet)
        heard: list[EventView] = []
        listening = fleet.on_event(heard.append, kinds=["lease_retiring", "node_stopping"])
        plan = await fleet.plan_lease(AcquireRequest(pool="runners"))
        assert (plan.can_acquire, plan.node_id) == (True, node.node_id)
        assert (await fleet.pool("runners")).is_enabled
        async with fleet.lease("runners", timeout_ms=20_000) as lease:
            assert (await fleet.snapshot()).leases[0].lease_id == lease.lease_id
            assert (await fleet.pending()).groups == []
            changed = await fleet.reload(fakes(enabled=False), is_dry_run=True)
            assert [one.path for one in changed.changes] == ["pools.runners.enabled"]
            await fleet.drain_node(lease.node_id, deadline_ms=600_000, then_retire=True)

            async def is_told() -> bool:
                return any(one.kind == "lease_retiring" for one in heard)

            await eventually_async(is_told)
            await fleet.revoke_lease(lease.lease_id, "enough")
        assert (await fleet.lease_view(lease.lease_id)).outcome == "revoked"

        async def is_stopping() -> bool:
            return any(one.kind == "node_stopping" for one in heard)

        await eventually_async(is_stopping)
        await listening.close()
        assert await fleet.drain(deadline_ms=0) == []
        await fleet.reload()
        await ready_nodes(fleet)


# -- refusals, waits and events, with a provider of the program's own ----------------------------


class Moody(FakeProvider):
    """A provider that does as a test says."""

    def __init__(self, context: ProviderContext) -> None:
        super().__init__(context)
        self.failure: Exception | None = None
        self.is_silent = False
        self.forgets = False
        self.strays: list[Machine] = []
        self.launch_gate = asyncio.Event()
        self.launch_gate.set()

    async def launch(self, request: LaunchRequest) -> Machine:
        await self.launch_gate.wait()
        if self.failure is not None:
            raise self.failure
        return await super().launch(request)

    async def probe(self, machine_id: MachineId) -> MachineFound:
        if self.is_silent:
            raise CapacityUnavailable("it does not answer", machine_id=machine_id)
        return await super().probe(machine_id)

    async def list_owned(self) -> AsyncIterator[Machine]:
        if self.forgets:
            return
        for stray in self.strays:
            yield stray
        async for machine in super().list_owned():
            yield machine

    async def get(self, machine_id: MachineId) -> Machine | None:
        if self.forgets:
            return None
        strays = {one.machine_id: one for one in self.strays}
        return strays.get(machine_id) or await super().get(machine_id)

    async def stop(self, machine_id: MachineId) -> None:
        self.strays = [one for one in self.strays if one.machine_id != machine_id]
        await super().stop(machine_id)


class World:
    """A fleet on a moody provider, and all that was heard of it."""

    def __init__(self, fleet: Fleet, moody: Moody) -> None:
        self.fleet = fleet
        self.moody = moody
        self.heard: set[str] = set()
        fleet.on_event(lambda event: self.heard.add(event.kind), after_seq=0)

    async def ask(self, **asked: Any) -> LeaseView:
        wanted = {"timeout_ms": 600_000, **asked}
        return await self.fleet.request_lease(AcquireRequest(pool="runners", **wanted))

    async def waits_for(self, *reasons: str, **asked: Any) -> None:
        """Ask, see that the request waits for this, and leave the line."""
        lease = await self.ask(**asked)

        async def says() -> bool:
            return (await self.fleet.lease_view(lease.lease_id)).reason in reasons

        await eventually_async(says, what=f"{reasons} of {lease.lease_id}")
        await self.fleet.release_lease(lease.lease_id)

    async def hears(self, *kinds: str) -> None:
        async def heard() -> bool:
            return self.heard >= set(kinds)

        await eventually_async(heard, what=f"{kinds}")


@asynccontextmanager
async def moody_world(**pool: Any) -> AsyncIterator[World]:
    opened: list[Moody] = []

    def open_moody(context: ProviderContext) -> Moody:
        opened.append(Moody(context))
        return opened[-1]

    kind = msgspec.structs.replace(PROVIDER, name="moody", open=open_moody)
    assert isinstance(kind, ProviderKind)
    more = {name: pool.pop(name) for name in ("budgets",) if name in pool}
    timing = pool.pop("timing", {})
    providers = pool.pop("providers", {})
    tier = {"provider": "moody", **pool.pop("tier", {})}
    config = fakes(tier=tier, **pool) | more
    config["fleet"] = {
        "timing": {**config["fleet"]["timing"], **timing},
        "providers": providers,
    }
    async with hostler.embedded.open(config, providers=[kind]) as fleet:

        async def is_open() -> bool:
            return bool(opened)

        await eventually_async(is_open)
        yield World(fleet, opened[0])


async def test_waiting_for_room() -> None:
    async with moody_world(tier={"node_count_max": 1}, leases_per_key_max=1) as world:
        (node,) = await ready_nodes(world.fleet)
        held = await world.ask(key="a")
        assert held.phase == "held"
        await world.waits_for("key_cap_reached", key="a")
        await world.waits_for("limit_reached", "no_capacity", key="b")
        await world.waits_for(
            "affinity_wait", key="b", affinity_node_id=node.node_id, affinity_wait_ms=500_000
        )
        late = await world.ask(key="b", timeout_ms=0)
        assert (late.phase, late.reason) == ("refused", "timed_out")
        left = await world.ask(key="b")
        assert (await world.fleet.release_lease(left.lease_id)).reason == "cancelled"
        await world.fleet.reload(msgspec.yaml.decode("pools: {}"))
        with pytest.raises(Exception, match=r"disabled|no pool"):
            await world.ask(key="c")


async def test_waiting_for_machines() -> None:
    async with moody_world(
        warm=0, launches_max=1, providers={"moody": {"launches_per_minute_max": 60}}
    ) as world:
        world.moody.launch_gate.clear()
        first = await world.ask(key="a")
        await world.waits_for("launches_in_flight", "launch_rate", "machine_starting", key="b")
        assert first.reason in ("machine_starting", None)
        world.moody.launch_gate.set()
        await world.hears("node_requested", "node_launched", "node_ready", "lease_granted")


async def test_machines_that_fail_and_providers_that_do_not_let_us() -> None:
    async with moody_world(warm=0, boot_failures_max=2) as world:
        world.moody.failure = CapacityUnavailable("none left", scope="zone")
        await world.waits_for("offer_cooling_down", key="a")
        await world.hears("node_launch_failed")
    async with moody_world(warm=0) as world:
        world.moody.failure = Throttled("too often", retry_after_ms=60_000)
        await world.waits_for("provider_paused", key="a")


async def test_growth_stops_when_machines_do_not_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    async with moody_world(warm=0, boot_failures_max=1, tier={"boot": "500ms"}) as world:
        world.moody.is_silent = True
        await world.waits_for("growth_stopped", key="a")
        await world.hears("growth_stopped")
        evidence = (await world.fleet.pool("runners")).tiers[0]
        assert evidence.boot_failure_count == 1


async def test_budgets_hold_back_and_warn() -> None:
    budgets = {
        "a": {"key": "a", "concurrent": {"leases": 1}},
        "b": {"key": "b", "daily": {"lease_time": "10s"}, "warn_at": [1]},
    }
    async with moody_world(budgets=budgets, lease="10s") as world:
        assert (await world.ask(key="a", wait_ms=20_000)).phase == "held"
        await world.waits_for("budget_in_use", key="a")
        assert (await world.ask(key="b", wait_ms=20_000)).phase == "held"
        await world.waits_for("budget_spent", key="b")
        await world.hears("budget_warned")


async def test_machines_that_go_silent_and_strays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MACHINE_PROBE_EVERY_MS", 100)
    monkeypatch.setattr(limits, "MACHINE_DOUBT_MS", 50)
    timing = {
        "suspect_after": "600ms",
        "fence_after": "2s",
        "lost_after": "4s",
        "list_every": "1s",
        "orphan_grace": "100ms",
    }
    async with moody_world(timing=timing) as world:
        (node,) = await ready_nodes(world.fleet)
        world.moody.is_silent = True
        await world.hears("node_suspected")
        world.moody.is_silent = False
        await world.hears("node_heard_again")
        machine = await world.moody.get(MachineId(node.machine_id or ""))
        assert machine is not None
        stray = msgspec.structs.replace(machine, machine_id=MachineId("stray"), token="other")
        world.moody.strays.append(stray)
        await world.hears("orphan_found")
        # "Gone", says the provider, and the machine answers: it is not believed.
        world.moody.forgets = True
        await world.hears("node_gone_doubted")
        world.moody.is_silent = True
        await world.hears("node_lost")
        world.moody.forgets = False


async def test_what_a_lease_leaves_is_cleaned_up_or_told() -> None:
    async with moody_world(clean_up=["false"]) as world:
        assert (await world.ask(key="a", wait_ms=20_000)).phase == "held"
        (held,) = await world.fleet.leases()
        await world.fleet.release_lease(held.lease_id)
        await world.hears("lease_settled", "node_clean_up_failed", "node_stopping", "node_retired")


async def test_a_key_is_good_for_one_request() -> None:
    async with moody_world() as world:
        first, other = AcquireRequest(pool="runners"), AcquireRequest(pool="runners", key="other")
        transport = world.fleet._transport
        held = await transport.send(calls.acquire_lease(first, key="issue-1#0"))
        again = await transport.send(calls.acquire_lease(first, key="issue-1#0"))
        assert again.lease_id == held.lease_id
        with pytest.raises(ClientError) as refused:
            await transport.send(calls.acquire_lease(other, key="issue-1#0"))
        assert refused.value.code == "idempotency_key_reused"


async def test_a_refused_lease_is_an_error() -> None:
    async with moody_world(warm=0) as world:
        with pytest.raises(LeaseRefused) as refused:
            async with world.fleet.lease("runners", timeout_ms=0):
                raise AssertionError("none is there")
        assert refused.value.code == "timed_out"
