"""What must hold of a chaos run: while it goes on, when the dust has settled, and at the end."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from hostler.base.errors import HostlerError
from hostler.client import Client
from hostler.wire.http import NodeView
from tests.e2e.chaos_world import OWN, ChaosWorld

BUNDLE_ID = "live-channel"
WARM_COUNT = 2
_MARK = re.compile(r"^HOSTLER_(ALLOCATION_ID|LEASE_ID|MACHINE_ID)=(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Life:
    """One process's own record: from its first to its last line."""

    key: str
    holder: str
    from_ms: int
    until_ms: int
    is_doubled: bool


def lives(records: Path) -> list[Life]:
    """Read what work has written down about itself."""
    found = []
    for file in sorted(records.glob("*=*")):
        lines = [line.split() for line in file.read_text().splitlines()]
        whole = [(what[0], int(what[1])) for what in lines if len(what) == 2]
        if whole:
            key, holder, _, _ = file.name.split("=")
            said = {what for what, _ in whole}
            found.append(Life(key, holder, whole[0][1], whole[-1][1], "doubled" in said))
    return found


def doubled(records: Path) -> list[str]:
    """Return a line for each two copies of one thing that were alive at one instant."""
    by_key: dict[str, list[Life]] = defaultdict(list)
    for life in lives(records):
        by_key[life.key].append(life)
    wrong = []
    for key, of_key in by_key.items():
        of_key.sort(key=lambda life: (life.from_ms, life.until_ms))
        wrong += [f"{key}: {life.holder} found another alive" for life in of_key if life.is_doubled]
        last = of_key[0]
        for life in of_key[1:]:
            if life.from_ms < last.until_ms:
                wrong.append(
                    f"{key}: {life.holder} began {last.until_ms - life.from_ms} ms before the end"
                    f" of {last.holder}"
                )
            if life.until_ms > last.until_ms:
                last = life
    return wrong


async def unsettled(world: ChaosWorld, client: Client) -> list[str]:
    """Return a line for each thing that is not (yet) as it must be; none when all is well."""
    try:
        nodes = await client.nodes()
        wrong = await _work(client) + await _spares(client, nodes)
        status = await client.status()
        # The list of machines is asked for again and again; nothing else may stay.
        if status.outbox_count > 1:
            wrong.append(f"{status.outbox_count} commands in the outbox")
        if status.lease_held_count or status.lease_waiting_count:
            wrong.append(f"{status.lease_held_count} held, {status.lease_waiting_count} waiting")
        return wrong + _machines(world, nodes) + await _strangers(world, client, nodes)
    except HostlerError as error:
        return [f"the server does not answer: {error}"]


async def _work(client: Client) -> list[str]:
    wrong = [
        f"{one.replica_id} is {one.phase}/{one.allocation_phase}: {one.reason} {one.reason_detail}"
        for one in await client.replicas(bundle=BUNDLE_ID)
        if one.allocation_phase != "ready"
    ]
    places = [one.node_id for one in await client.allocations(bundle=BUNDLE_ID)]
    if len(places) != 2 or len(set(places)) != 2:
        wrong.append(f"two replicas are to be on two nodes, and are on {places}")
    return wrong


async def _spares(client: Client, nodes: list[NodeView]) -> list[str]:
    wrong = [
        f"node {node.node_id} ({node.tier}) is {node.phase}, {node.health}, {node.retire_reason},"
        f" {[note.reason for note in node.notes]}"
        for node in nodes
        if node.phase != "ready" or node.health != "live" or not node.is_connected
    ]
    own = [node for node in nodes if node.tier == "own"]
    if len(own) != len(OWN):
        wrong.append(f"{len(own)} own boxes")
    for pool in await client.pools():
        if pool.present_spare_count < pool.spare_count:
            wrong.append(f"{pool.present_spare_count} spares in {pool.name}: {pool.notes}")
        if pool.warm_count and pool.idle_count < pool.warm_count:
            wrong.append(f"{pool.idle_count} warm in {pool.name}: {pool.notes}")
    return wrong


def _machines(world: ChaosWorld, nodes: list[NodeView]) -> list[str]:
    # The folder of a machine that died by itself is kept for people to look at: it has no process.
    known = {node.machine_id for node in nodes if node.tier != "own"}
    return [
        f"node of machine {one} has no folder"
        for one in sorted(map(str, known - set(world.machine_ids())))
    ]


async def _strangers(world: ChaosWorld, client: Client, nodes: list[NodeView]) -> list[str]:
    """Return processes that belong to nothing that the server knows."""
    known: dict[str, set[str | None]] = {
        "MACHINE_ID": {node.machine_id for node in nodes},
        "ALLOCATION_ID": {one.allocation_id for one in await client.allocations()},
        "LEASE_ID": {one.lease_id for one in await client.leases()},
    }
    wrong = []
    for process in world.processes():
        told = world.told_by(process)
        marks = dict(_MARK.findall(told))
        strange = [f"{what} {value}" for what, value in marks.items() if value not in known[what]]
        is_server = world.demo.server is not None and process.pid == world.demo.server.pid
        if told and (strange or not (marks or is_server)):
            wrong.append(f"process {process.pid} of {strange or 'nobody'}: {told[:120]!r}")
    return wrong


def left_over(world: ChaosWorld) -> list[str]:
    """Return what is left when everything was deleted and interrupted."""
    return world.demo.processes_left()
