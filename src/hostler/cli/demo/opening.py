"""How the demo begins and ends, and what it does while nothing is broken yet."""

from __future__ import annotations

import asyncio
import functools
import time
from pathlib import Path
from typing import Final

from hostler.cli.demo.channel import is_whole, read_playlist
from hostler.cli.demo.failure import DemoFailed
from hostler.cli.demo.stage import BACKUP, BUNDLE, OWN, PATIENCE_S, PRIMARY, Stage, ms_since
from hostler.cli.demo.world import BOXES

SEGMENTS_WATCHED: Final = 3


async def begin(stage: Stage) -> None:
    """Start everything, and put the channel on air."""
    with stage.screen.step("start a server, two boxes of our own, two warm runners") as step:
        stage.world.start_server()
        await stage.until(step, "the server answers", stage.answers)
        for name in BOXES:
            await stage.world.plug_in(name)
            stage.world.start_agent(name)
        await stage.until(
            step, "two own boxes", lambda: stage.count_ready("studio", OWN, len(BOXES))
        )
        await stage.until(step, "one spare", stage.spare)
        await stage.until(
            step, "two warm runners", lambda: stage.count_ready("runners", "local", 2)
        )
        step.done(f"{len(await stage.client.nodes())} nodes ready")
    await _apply(stage)
    await _watch(stage)


async def _apply(stage: Stage) -> None:
    with stage.screen.step("apply examples/live-channel.yaml: gold, primary and backup") as step:
        began = time.monotonic()
        await stage.client.submit_bundle(stage.bundle)
        primary = await stage.until(step, "the primary on air", lambda: stage.on_air(PRIMARY))
        backup = await stage.until(step, "the backup on air", lambda: stage.on_air(BACKUP))
        stage.measures.placed_ms = ms_since(began)
        if primary.node_id == backup.node_id:
            raise DemoFailed(f"primary and backup are both on {primary.node_id}")
        step.done(f"primary on {primary.node_id}, backup on {backup.node_id}")


async def _watch(stage: Stage) -> None:
    with stage.screen.step("watch segments being written by both") as step:
        counts = []
        for replica in (PRIMARY, BACKUP):
            folder = await stage.stream_of(await stage.allocation(replica))
            counts.append(await stage.until(step, replica, functools.partial(_enough, folder)))
        step.done(f"{counts[0]} and {counts[1]} segments of one second so far")


async def _enough(folder: Path) -> int | None:
    segments = read_playlist(folder)
    return len(segments) if len(segments) >= SEGMENTS_WATCHED else None


async def run_on_a_lease(stage: Stage) -> None:
    """Lease a warm node and run a command over it."""
    with stage.screen.step("lease a warm runner and run a command over it") as step:
        began = time.monotonic()
        async with stage.client.lease("runners", key="demo") as lease:
            stage.measures.lease_acquire_ms = ms_since(began)
            began = time.monotonic()
            result = await lease.run(["sh", "-c", "echo ran on $HOSTLER_NODE_ID"])
            stage.measures.run_ms = ms_since(began)
            said = result.stdout.decode().strip()
            if result.status != 0 or lease.node_id not in said:
                raise DemoFailed(f"the command ended with {result.status} and said {said!r}")
            step.done(f"held in {stage.measures.lease_acquire_ms} ms; it said: {said}")


async def count_segments(stage: Stage) -> None:
    """Count what a viewer of the backup has missed, before the backup itself is moved."""
    allocation = await stage.allocation(BACKUP)
    segments = await stage.segments(allocation)
    if not is_whole(await stage.stream_of(allocation), segments):
        stage.measures.did_not_hold.append("a segment of the backup is not a transport stream")
    stage.measures.segments_made = len(segments)
    stage.measures.segments_lost_backup = await stage.missed_by(allocation)


async def close(stage: Stage) -> None:
    """Take everything down as people do, and count what is left."""
    with stage.screen.step("delete the bundle, end everything, count what is left") as step:
        world = stage.world
        for bundle in await stage.client.bundles():
            await stage.client.delete_bundle(bundle.bundle_id)
        await stage.until(step, f"no bundle such as {BUNDLE}", lambda: _are_bundles_gone(stage))
        if stage.lease is not None:
            await stage.lease.release()
        step.say("Ctrl-C to the server, which ends its machines, and to the agents")
        is_clean = await asyncio.to_thread(world.interrupt, world.server, PATIENCE_S)
        for agent in world.agents.values():
            is_clean &= await asyncio.to_thread(world.interrupt, agent, PATIENCE_S) or (
                agent.returncode == -9  # one whose box we killed
            )
        if not is_clean:
            stage.measures.did_not_hold.append("a process did not end cleanly on Ctrl-C")
        stage.measures.leaked_machines = len(world.machines_left())
        left = world.processes_left()
        stage.measures.leaked_processes = len(left)
        step.done("nothing is left" if not left else "; ".join(left))


async def _are_bundles_gone(stage: Stage) -> bool:
    return not await stage.client.bundles()
