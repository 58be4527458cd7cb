"""The story that the demo tells, one chapter a method.

Each chapter does what an operator or a client would do, over the public API, waits for what must
follow, and writes down how long it took. A wait that runs out of patience ends the story.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from msgspec.structs import replace

from hostler.base.errors import HostlerError
from hostler.cli.demo.channel import (
    PLAYLIST,
    Segment,
    count_lost,
    find_stream,
    is_whole,
    read_playlist,
)
from hostler.cli.demo.failure import DemoFailed
from hostler.cli.demo.measures import Measures
from hostler.cli.demo.screen import Screen, Step
from hostler.cli.demo.world import DemoWorld
from hostler.client import Client
from hostler.client.lease import HeldLease
from hostler.wire.documents import BundleDocument
from hostler.wire.http import AcquireRequest, AllocationView, NodeView

T = TypeVar("T")

BUNDLE: Final = "live-channel"
PRIMARY: Final = f"{BUNDLE}/encoder/0"
BACKUP: Final = f"{BUNDLE}/encoder/1"

PATIENCE_S: Final = 30.0
"""Longest wait for any one thing; on an idle laptop nothing takes a third of it."""
POLL_S: Final = 0.03
SEGMENTS_WATCHED: Final = 3


class Story:
    """One run of the demo."""

    def __init__(self, world: DemoWorld, client: Client, screen: Screen, *, is_kept: bool) -> None:
        """Begin a story; with `is_kept` it stops short of taking everything down."""
        self._world = world
        self._client = client
        self._screen = screen
        self._is_kept = is_kept
        self._lease: HeldLease | None = None
        self.measures = Measures()

    async def tell(self, bundle: BundleDocument) -> None:
        """Run every chapter in order.

        Raises:
            DemoFailed: Something did not follow; what was measured until then is in `measures`.
        """
        await self._open()
        await self._apply(bundle)
        await self._watch()
        await self._run_on_a_lease()
        await self._kill_the_primary()
        await self._kill_the_server()
        await self._drain()
        await self._count_segments()
        await self._move_the_backup()
        await self._break_a_version(bundle)
        if not self._is_kept:
            await self._close()

    # -- chapters --------------------------------------------------------------------------------

    async def _open(self) -> None:
        with self._screen.step("start a server, two boxes of our own, two warm runners") as step:
            self._world.start_server()
            await self._until(step, "the server answers", self._answers)
            for name in ("own-1", "own-2"):
                self._world.start_agent(name)
            await self._until(step, "two own boxes", lambda: self._count_ready("studio", "own", 2))
            await self._until(step, "one spare", self._spare)
            await self._until(
                step, "two warm runners", lambda: self._count_ready("runners", "local", 2)
            )
            step.done(f"{len(await self._client.nodes())} nodes ready")

    async def _apply(self, bundle: BundleDocument) -> None:
        with self._screen.step(
            "apply examples/live-channel.yaml: gold, primary and backup"
        ) as step:
            began = time.monotonic()
            await self._client.submit_bundle(bundle)
            primary = await self._until(step, "the primary on air", lambda: self._on_air(PRIMARY))
            backup = await self._until(step, "the backup on air", lambda: self._on_air(BACKUP))
            self.measures.placed_ms = _ms_since(began)
            if primary.node_id == backup.node_id:
                raise DemoFailed(f"primary and backup are both on {primary.node_id}")
            step.done(f"primary on {primary.node_id}, backup on {backup.node_id}")

    async def _watch(self) -> None:
        with self._screen.step("watch segments being written by both") as step:
            counts = []
            for replica in (PRIMARY, BACKUP):
                folder = await self._stream_of(await self._allocation(replica))
                enough = functools.partial(_enough, folder, SEGMENTS_WATCHED)
                counts.append(await self._until(step, replica, enough))
            step.done(f"{counts[0]} and {counts[1]} segments of one second so far")

    async def _run_on_a_lease(self) -> None:
        with self._screen.step("lease a warm runner and run a command over it") as step:
            began = time.monotonic()
            async with self._client.lease("runners", key="demo") as lease:
                self.measures.lease_acquire_ms = _ms_since(began)
                began = time.monotonic()
                result = await lease.run(["sh", "-c", "echo ran on $HOSTLER_NODE_ID"])
                self.measures.run_ms = _ms_since(began)
                said = result.stdout.decode().strip()
                if result.status != 0 or lease.node_id not in said:
                    raise DemoFailed(f"the command ended with {result.status} and said {said!r}")
                step.done(f"held in {self.measures.lease_acquire_ms} ms; it said: {said}")

    async def _kill_the_primary(self) -> None:
        with self._screen.step("kill -9 the primary's node: agent, supervisor, encoder") as step:
            before = await self._allocation(PRIMARY)
            node = await self._client.node(before.node_id)
            spare = await self._until(step, "a spare at hand", self._spare)
            began = time.monotonic()
            count = self._kill_node(node)
            after = await self._until(
                step,
                "silence, fencing, then the spare",
                lambda: self._on_air(PRIMARY, but_not=before.allocation_id),
            )
            self.measures.recovered_ms = _ms_since(began)
            if after.node_id != spare.node_id:
                raise DemoFailed(f"recovered on {after.node_id}, not on the spare {spare.node_id}")
            step.done(f"{count} processes died; on air again on the spare {after.node_id}")
        with self._screen.step("the spare is replaced") as step:
            fresh = await self._until(
                step, "a new spare", lambda: self._spare(but_not=spare.node_id)
            )
            self.measures.spare_refilled_ms = _ms_since(began)
            step.done(f"{fresh.node_id} stands by")

    async def _kill_the_server(self) -> None:
        with self._screen.step("kill -9 the server, and start it again on the same file") as step:
            self._lease = await self._client.acquire(
                AcquireRequest(pool="runners", key="demo-held")
            )
            await self._until(step, "another warm runner in its place", self._all_ready)
            nodes = {node.node_id: node.phase for node in await self._client.nodes()}
            encoders = self._world.encoders()
            allocations = await self._copies()
            held = self._lease.view
            began = time.monotonic()
            self._world.kill_server()
            self._world.start_server()
            await self._until(step, "the server answers", self._answers)
            self.measures.server_restart_gap_ms = _ms_since(began)
            await self._until(step, "its agents are back", self._all_connected)
            self.measures.encoder_restarts_on_server_kill = len(
                set(encoders.items()) - set(self._world.encoders().items())
            ) + len(set(allocations) ^ set(await self._copies()))
            lease = await self._client.lease_view(held.lease_id)
            is_same = (lease.phase, lease.epoch, lease.node_id) == (
                "held",
                held.epoch,
                held.node_id,
            )
            self.measures.leases_lost_on_server_kill = 0 if is_same else 1
            now = {node.node_id: node.phase for node in await self._client.nodes()}
            self.measures.nodes_changed_on_server_kill = len(set(nodes.items()) ^ set(now.items()))
            step.done(f"{len(encoders)} encoders went on; lease {held.lease_id} is still ours")

    async def _drain(self) -> None:
        with self._screen.step("drain the primary's node") as step:
            before = await self._allocation(PRIMARY)
            began = time.monotonic()
            await self._client.drain_node(before.node_id, deadline_ms=30_000, then_retire=True)
            after = await self._until(
                step,
                "on air elsewhere",
                lambda: self._on_air(PRIMARY, but_not=before.allocation_id),
            )
            self.measures.drained_ms = _ms_since(began)
            step.done(f"moved from {before.node_id} to {after.node_id}")

    async def _move_the_backup(self) -> None:
        with self._screen.step("drain the backup's node, and let work onto it again") as step:
            before = await self._allocation(BACKUP)
            began = time.monotonic()
            await self._client.drain_node(before.node_id, deadline_ms=30_000)
            after = await self._until(
                step,
                "on air elsewhere",
                lambda: self._on_air(BACKUP, but_not=before.allocation_id),
            )
            await self._until(
                step,
                "nothing is left there",
                lambda: self._is_drained(before.node_id),
            )
            self.measures.backup_moved_ms = _ms_since(began)
            await self._client.uncordon_node(before.node_id)
            step.done(f"moved from {before.node_id} to {after.node_id}")

    async def _break_a_version(self, bundle: BundleDocument) -> None:
        with self._screen.step("roll out a version that cannot encode") as step:
            primary = await self._allocation(PRIMARY)
            began = time.monotonic()
            await self._client.submit_bundle(_broken(bundle))
            await self._until(step, "it fails and turns back", self._is_rolled_back)
            await self._until(step, "the backup on air again", lambda: self._on_air(BACKUP))
            self.measures.rolled_back_ms = _ms_since(began)
            now = await self._allocation(PRIMARY)
            is_same = now.allocation_id == primary.allocation_id
            self.measures.primary_restarts_on_broken_version = 0 if is_same else 1
            step.done("rolled back by itself; the primary was on air all the time")

    async def _close(self) -> None:
        with self._screen.step("delete the bundle, end everything, count what is left") as step:
            await self._client.delete_bundle(BUNDLE)
            await self._until(step, "no bundle", self._is_bundle_gone)
            if self._lease is not None:
                await self._lease.release()
            step.say("Ctrl-C to the server, which ends its machines, and to the agents")
            server = self._world.server
            is_clean = await asyncio.to_thread(self._world.interrupt, server, PATIENCE_S)
            for agent in self._world.agents.values():
                is_clean &= await asyncio.to_thread(self._world.interrupt, agent, PATIENCE_S) or (
                    agent.returncode == -9  # the one whose box we killed
                )
            if not is_clean:
                self.measures.did_not_hold.append("a process did not end cleanly on Ctrl-C")
            self.measures.leaked_machines = len(self._world.machines_left())
            left = self._world.processes_left()
            self.measures.leaked_processes = len(left)
            step.done("nothing is left" if not left else "; ".join(left))

    async def _count_segments(self) -> None:
        allocation = await self._allocation(BACKUP)
        folder = await self._stream_of(allocation)
        segments = read_playlist(folder)
        if not is_whole(folder, segments):
            self.measures.did_not_hold.append("a segment of the backup is not a transport stream")
        self.measures.segments_made = len(segments)
        self.measures.segments_lost_backup = count_lost(segments) + _late(segments)

    # -- questions -------------------------------------------------------------------------------

    async def _until(
        self, step: Step, what: str, ask: Callable[[], Awaitable[T | bool | None]]
    ) -> T:
        """Ask again and again until the answer is there.

        Raises:
            DemoFailed: It did not come in time.
        """
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            step.say(what)
            self._world.check_running()
            try:
                answer = await ask()
            except HostlerError as error:
                answer, what = None, f"{what.split(' (', maxsplit=1)[0]} ({error.message})"
            if answer is not None and answer is not False:
                return answer  # type: ignore[return-value]  # true where the question is yes or no
            await asyncio.sleep(POLL_S)
        raise DemoFailed(f"{step.title}: waited {PATIENCE_S:.0f} s for: {what}")

    async def _answers(self) -> bool:
        await self._client.status()
        return True

    async def _count_ready(self, pool: str, tier: str, count: int) -> bool:
        nodes = await self._client.nodes(pool=pool)
        return sum(n.tier == tier and n.phase == "ready" for n in nodes) >= count

    async def _spare(self, but_not: str = "") -> NodeView | None:
        for node in await self._client.nodes(pool="studio"):
            is_idle = node.phase == "ready" and node.allocation_count == 0
            if node.is_spare and is_idle and node.health == "live" and node.node_id != but_not:
                return node
        return None

    async def _copies(self) -> list[tuple[str, int, int | None]]:
        found = await self._client.allocations(bundle=BUNDLE)
        return [(a.allocation_id, a.epoch, a.started_at_ms) for a in found]

    async def _allocation(self, replica_id: str) -> AllocationView:
        for allocation in await self._client.allocations(bundle=BUNDLE):
            if allocation.replica_id == replica_id:
                return allocation
        raise DemoFailed(f"{replica_id} has no place")

    async def _on_air(self, replica_id: str, but_not: str = "") -> AllocationView | None:
        for allocation in await self._client.allocations(bundle=BUNDLE):
            is_other = allocation.allocation_id != but_not
            if allocation.replica_id == replica_id and allocation.phase == "ready" and is_other:
                return allocation
        return None

    async def _all_connected(self) -> bool:
        nodes = [n for n in await self._client.nodes() if n.phase == "ready"]
        return bool(nodes) and all(n.is_connected or n.health == "lost" for n in nodes)

    async def _all_ready(self) -> bool:
        return all(node.phase == "ready" for node in await self._client.nodes())

    async def _is_drained(self, node_id: str) -> bool:
        node = await self._client.node(node_id)
        return node.phase == "retired" or (node.drain is not None and node.drain.is_done)

    async def _is_rolled_back(self) -> bool:
        return (await self._client.rollout(BUNDLE)).phase == "rolled_back"

    async def _is_bundle_gone(self) -> bool:
        return not [b for b in await self._client.bundles() if b.bundle_id == BUNDLE]

    async def _stream_of(self, allocation: AllocationView) -> Path:
        folder = await asyncio.to_thread(find_stream, self._world.root, allocation.allocation_id)
        if folder is None:
            raise DemoFailed(f"{allocation.allocation_id} is ready and has no {PLAYLIST}")
        return folder

    def _kill_node(self, node: NodeView) -> int:
        if node.machine_id is not None:
            return self._world.kill_machine(node.machine_id)
        return self._world.kill_box(node.hostname)


def _broken(bundle: BundleDocument) -> BundleDocument:
    """Return the bundle with an encoder that ends at once: of a picture without a size."""
    jobs = [
        replace(job, run=replace(job.run, argv=[*job.run.argv, "--size", "none"]))
        for job in bundle.jobs
    ]
    return replace(bundle, jobs=jobs)


def _ms_since(began: float) -> int:
    return round((time.monotonic() - began) * 1_000)


async def _enough(folder: Path, count: int) -> int | None:
    segments = read_playlist(folder)
    return len(segments) if len(segments) >= count else None


LATE_MS: Final = 3_000
"""A segment is whole a second after its first picture; three is an encoder that stands still."""


def _late(segments: list[Segment]) -> int:
    """Return how many segments the playlist is behind the clock by more than it may be."""
    if not segments:
        return 1
    last = segments[-1]
    behind_ms = round(time.time() * 1_000) - (last.at_ms + last.length_ms)
    return max(0, behind_ms - LATE_MS) // last.length_ms
