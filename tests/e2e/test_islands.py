"""Nodes that die, are cut off, and are drained, with real processes on real networks.

Each node is a network namespace (`tests/e2e/islands.py`). What lived when is told by the work
itself: records by one clock, and a lock that proves a second copy. What is asserted does not depend
on how long anything takes.
"""

from __future__ import annotations

import pytest

from hostler.wire.http import EventView
from tests.e2e.chaos_checks import Life, doubled, lives
from tests.e2e.islands import Island, Islands, islands
from tests.eventually import eventually_async

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

BACK_WITHIN_S = 60.0


async def settle_four_on_each(fleet: Islands) -> dict[str, str]:
    """Have two gold and two silver replicas on each node; return the node of each replica."""
    nodes = [await fleet.node(island) for island in fleet.islands]
    for number, node in enumerate(nodes):
        others = [other for other in nodes if other is not node]
        for other in others:
            await fleet.client.cordon_node(other.node_id)
        await fleet.submit(f"b{number}", a="silver", b="gold", c="silver", d="gold")
        await fleet.until_all_ready()
        for other in others:
            await fleet.client.uncordon_node(other.node_id)
    placed = await fleet.until_all_ready()
    assert sorted(placed.values()) == sorted(4 * [node.node_id for node in nodes])
    return placed


async def placings_since(fleet: Islands, seq: int) -> list[EventView]:
    found = fleet.client.events(after_seq=seq, kinds=["replica_placed"], follow=False)
    return [event async for event in found]


async def newest(fleet: Islands) -> int:
    return max([event.seq async for event in fleet.client.events(tail=1, follow=False)])


async def until_elsewhere(fleet: Islands, replicas: set[str], node_id: str) -> None:
    """Wait until these replicas are ready, and not on that node."""

    async def are_back() -> bool:
        found = [one for one in await fleet.client.replicas() if one.replica_id in replicas]
        return all(one.allocation_phase == "ready" and one.node_id != node_id for one in found)

    what = f"{sorted(replicas)} are ready elsewhere"
    await eventually_async(are_back, within_s=BACK_WITHIN_S, what=what)


async def until_health(fleet: Islands, node_id: str, health: str) -> None:
    async def is_so() -> bool:
        return (await fleet.client.node(node_id)).health == health

    await eventually_async(is_so, what=f"{node_id} is {health}")


def life_count(fleet: Islands) -> dict[str, int]:
    """How often each replica was started, by its own records."""
    found: dict[str, int] = {}
    for life in lives(fleet.records):
        key = life.key.replace("~", "/")
        found[key] = found.get(key, 0) + 1
    return found


async def test_a_killed_nodes_replicas_come_back_by_band_with_one_trace_each() -> None:
    async with islands() as fleet:
        placed = await settle_four_on_each(fleet)
        victim = fleet.islands[0]
        node_id = (await fleet.node(victim)).node_id
        lost = {replica for replica, place in placed.items() if place == node_id}
        before = {key: len((await fleet.client.explain(key)).decisions) for key in lost}
        seq = await newest(fleet)
        assert victim.kill() > len(lost)
        await until_elsewhere(fleet, lost, node_id)

        placings = await placings_since(fleet, seq)
        assert sorted(event.about["replica"] for event in placings) == sorted(lost)
        order = [event.about["replica"].split("/")[1] for event in placings]
        assert (sorted(order[:2]), sorted(order[2:])) == (["b", "d"], ["a", "c"]), "gold first"
        for replica in sorted(lost):
            told = await fleet.client.explain(replica)
            assert len(told.decisions) == before[replica] + 1
        assert doubled(fleet.records) == []
        assert life_count(fleet) == {key: 2 if key in lost else 1 for key in placed}


async def test_a_cut_within_the_limits_changes_nothing_and_one_beyond_them_moves_one_copy() -> None:
    async with islands() as fleet:
        await fleet.submit("plain", a="gold", b="silver", replicas=2)
        await fleet.submit("kept", k="keep")
        placed = await fleet.until_all_ready()
        island = await busiest(fleet, placed, with_replica="kept/k/0")
        node_id = (await fleet.node(island)).node_id
        there = {key for key, place in placed.items() if place == node_id}
        seq = await newest(fleet)

        island.cut()
        await until_health(fleet, node_id, "suspect")
        island.mend()
        await until_health(fleet, node_id, "live")
        assert await fleet.until_all_ready() == placed
        assert await placings_since(fleet, seq) == []
        assert life_count(fleet) == dict.fromkeys(placed, 1)

        island.cut()
        await until_elsewhere(fleet, there - {"kept/k/0"}, node_id)
        assert await is_held_back(fleet, "kept/k/0", node_id)
        island.mend()
        await until_health(fleet, (await fleet.node(island)).node_id, "live")
        again = await fleet.until_all_ready()
        assert again["kept/k/0"] == node_id
        moved = {event.about["replica"] for event in await placings_since(fleet, seq)}
        assert moved == there - {"kept/k/0"}
        assert doubled(fleet.records) == []
        assert life_count(fleet) == {key: 2 if key in moved else 1 for key in placed}
        assert alive_now(fleet, island) == 1, (
            "what was fenced is gone, what was to be kept is there"
        )


async def test_a_drain_moves_everything_and_ends_when_the_agent_says_so() -> None:
    async with islands() as fleet:
        await fleet.submit("pair", a="gold", b="silver", replicas=2)
        await fleet.submit("single", a="gold", b="silver")
        placed = await fleet.until_all_ready()
        island = await busiest(fleet, placed, with_replica="pair/a/0")
        node = await fleet.node(island)
        there = {key for key, place in placed.items() if place == node.node_id}
        await fleet.client.drain_node(node.node_id, deadline_ms=60_000)

        async def is_done() -> bool:
            drain = (await fleet.client.node(node.node_id)).drain
            return drain is not None and drain.is_done

        await eventually_async(is_done, within_s=BACK_WITHIN_S, what="nothing is left on the node")
        # Looked at once: when the drain is over, nothing may live there any more.
        assert alive_now(fleet, island) == 0
        now = await fleet.until_all_ready()
        assert node.node_id not in now.values()
        assert life_count(fleet) == {key: 2 if key in there else 1 for key in placed}
        assert doubled(fleet.records) == []
        for job in ("a", "b"):
            assert gaps_ms(fleet, f"pair/{job}") == [], "one of the two was always alive"


async def busiest(fleet: Islands, placed: dict[str, str], *, with_replica: str) -> Island:
    """Return the island that a replica is on."""
    for island in fleet.islands:
        if (await fleet.node(island)).node_id == placed[with_replica]:
            return island
    raise AssertionError(f"{with_replica} is on no island")


async def is_held_back(fleet: Islands, replica: str, node_id: str) -> bool:
    """Say whether a replica waits for its node to come back, and has no other place."""
    found = [one for one in await fleet.client.allocations() if one.replica_id == replica]
    return [one.node_id for one in found] == [node_id]


def alive_now(fleet: Islands, island: Island) -> int:
    """How many copies of the work live on an island at this moment."""
    return sum(fleet.is_work(pid) for pid in island.pids())


def gaps_ms(fleet: Islands, job: str) -> list[tuple[int, int]]:
    """Return when neither replica of a job was alive, between the first life and the last."""
    found = sorted((life.from_ms, life.until_ms) for life in of_job(fleet, job))
    gaps, until_ms = [], found[0][1]
    for from_ms, ends_ms in found[1:]:
        if from_ms > until_ms:
            gaps.append((until_ms, from_ms))
        until_ms = max(until_ms, ends_ms)
    return gaps


def of_job(fleet: Islands, job: str) -> list[Life]:
    return [life for life in lives(fleet.records) if life.key.startswith(job.replace("/", "~"))]
