"""What every chapter of the demo works with: the world, the client, and the questions they ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from hostler.base.errors import HostlerError
from hostler.cli.demo.channel import PLAYLIST, Segment, count_lost, find_stream, read_playlist
from hostler.cli.demo.failure import DemoFailed
from hostler.cli.demo.measures import Measures
from hostler.cli.demo.screen import Screen, Step
from hostler.cli.demo.world import DemoWorld
from hostler.client import Client
from hostler.client.lease import HeldLease
from hostler.wire.documents import BundleDocument
from hostler.wire.http import AcquireRequest, AllocationView, LeaseView, NodeView

T = TypeVar("T")

BUNDLE: Final = "live-channel"
PRIMARY: Final = f"{BUNDLE}/encoder/0"
BACKUP: Final = f"{BUNDLE}/encoder/1"
OWN: Final = "own"
"""The tier of our own boxes: those with a cable and a notice file."""

PATIENCE_S: Final = 30.0
"""Longest wait for any one thing; on an idle laptop nothing takes half of it."""
POLL_S: Final = 0.03
LATE_MS: Final = 3_000
"""A segment is whole a second after its first picture; three is an encoder that stands still."""


class Stage:
    """One run of the demo."""

    def __init__(
        self, world: DemoWorld, client: Client, screen: Screen, bundle: BundleDocument
    ) -> None:
        self.world = world
        self.client = client
        self.screen = screen
        self.bundle = bundle
        self.lease: HeldLease | None = None
        self.measures = Measures()

    # -- what several chapters do ----------------------------------------------------------------

    async def held_lease(self) -> HeldLease:
        """Return the lease that is held through all that is killed, acquiring it first."""
        if self.lease is None:
            self.lease = await self.client.acquire(AcquireRequest(pool="runners", key="demo-held"))
        return self.lease

    async def is_still_ours(self, held: LeaseView) -> bool:
        """Say whether a lease is held as it was: by the same grant, on the same node."""
        now = await self.client.lease_view(held.lease_id)
        return (now.phase, now.epoch, now.node_id) == ("held", held.epoch, held.node_id)

    async def count_changed(
        self, copies: list[tuple[str, int, int | None]], encoders: dict[int, float]
    ) -> int:
        """Count copies and encoders that are not the same as they were."""
        others = set(encoders.items()) - set(self.world.encoders().items())
        return len(others) + len(set(copies) ^ set(await self.copies()))

    async def newest_event(self) -> int:
        """Return the position of the last event."""
        return max([one.seq async for one in self.client.events(tail=1, follow=False)], default=0)

    async def count_events(self, after_seq: int, *kinds: str) -> int:
        """Count events of some kinds since a position."""
        found = self.client.events(after_seq=after_seq, kinds=kinds, follow=False)
        return len([one async for one in found])

    async def segments(self, allocation: AllocationView) -> list[Segment]:
        """Return what an allocation has put on air."""
        return read_playlist(await self.stream_of(allocation))

    async def missed_by(self, allocation: AllocationView) -> int:
        """Return how many segments a viewer of an allocation has missed until now."""
        segments = await self.segments(allocation)
        return count_lost(segments) + late(segments)

    # -- questions -------------------------------------------------------------------------------

    async def until(
        self, step: Step, what: str, ask: Callable[[], Awaitable[T | bool | None]]
    ) -> T:
        """Ask again and again until the answer is there.

        Raises:
            DemoFailed: It did not come in time.
        """
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            step.say(what)
            self.world.check_running()
            try:
                answer = await ask()
            except HostlerError as error:
                answer, what = None, f"{what.split(' (', maxsplit=1)[0]} ({error.message})"
            if answer is not None and answer is not False:
                return answer  # type: ignore[return-value]  # true where the question is yes or no
            await asyncio.sleep(POLL_S)
        raise DemoFailed(f"{step.title}: waited {PATIENCE_S:.0f} s for: {what}")

    async def answers(self) -> bool:
        """Say that the server answers; it raises when it does not."""
        await self.client.status()
        return True

    async def count_ready(self, pool: str, tier: str, count: int) -> bool:
        """Say whether a tier has so many ready nodes."""
        nodes = await self.client.nodes(pool=pool)
        return sum(n.tier == tier and n.phase == "ready" for n in nodes) >= count

    async def spare(self, but_not: str = "") -> NodeView | None:
        """Return an idle spare that lives, if there is one."""
        for node in await self.client.nodes(pool="studio"):
            is_idle = node.phase == "ready" and node.allocation_count == 0
            if node.is_spare and is_idle and node.health == "live" and node.node_id != but_not:
                return node
        return None

    async def copies(self) -> list[tuple[str, int, int | None]]:
        """Return which allocations there are, by which grant, and since when they run."""
        found = await self.client.allocations(bundle=BUNDLE)
        return [(a.allocation_id, a.epoch, a.started_at_ms) for a in found]

    async def allocation(self, replica_id: str) -> AllocationView:
        """Return the place of a replica."""
        for allocation in await self.client.allocations(bundle=BUNDLE):
            if allocation.replica_id == replica_id:
                return allocation
        raise DemoFailed(f"{replica_id} has no place")

    async def on_air(self, replica_id: str, but_not: str = "") -> AllocationView | None:
        """Return the place of a replica once it is ready there."""
        for allocation in await self.client.allocations(bundle=BUNDLE):
            is_other = allocation.allocation_id != but_not
            if allocation.replica_id == replica_id and allocation.phase == "ready" and is_other:
                return allocation
        return None

    async def all_connected(self) -> bool:
        """Say whether every node that is not lost has its link."""
        nodes = [n for n in await self.client.nodes() if n.phase == "ready"]
        return bool(nodes) and all(n.is_connected or n.health == "lost" for n in nodes)

    async def all_ready(self) -> bool:
        """Say whether every node is ready."""
        return all(node.phase == "ready" for node in await self.client.nodes())

    async def is_drained(self, node_id: str) -> bool:
        """Say whether nothing is left on a node."""
        node = await self.client.node(node_id)
        return node.phase == "retired" or (node.drain is not None and node.drain.is_done)

    async def is_rolled_back(self) -> bool:
        """Say whether the last rollout has turned back."""
        return (await self.client.rollout(BUNDLE)).phase == "rolled_back"

    async def is_bundle_gone(self) -> bool:
        """Say whether the bundle is deleted and nothing of it is left."""
        return not [b for b in await self.client.bundles() if b.bundle_id == BUNDLE]

    async def stream_of(self, allocation: AllocationView) -> Path:
        """Return the folder into which an allocation writes its stream."""
        folder = await asyncio.to_thread(find_stream, self.world.root, allocation.allocation_id)
        if folder is None:
            raise DemoFailed(f"{allocation.allocation_id} is ready and has no {PLAYLIST}")
        return folder

    def kill_node(self, node: NodeView) -> int:
        """Kill -9 everything of a node; return how many processes that was."""
        if node.machine_id is not None:
            return self.world.kill_machine(node.machine_id)
        return self.world.kill_box(node.hostname)


def ms_since(began: float) -> int:
    """Return the milliseconds since an instant of the monotonic clock."""
    return round((time.monotonic() - began) * 1_000)


def late(segments: list[Segment]) -> int:
    """Return how many segments the playlist is behind the clock by more than it may be."""
    if not segments:
        return 1
    last = segments[-1]
    behind_ms = round(time.time() * 1_000) - (last.at_ms + last.length_ms)
    return max(0, behind_ms - LATE_MS) // last.length_ms
