"""Chapters in which work leaves: before its machine goes, by order, or from what refuses it."""

from __future__ import annotations

import time
from typing import Final

from msgspec.structs import replace

from hostler.cli.demo.failure import DemoFailed
from hostler.cli.demo.stage import BACKUP, OWN, PRIMARY, Stage, ms_since
from hostler.cli.demo.world import KIOSK
from hostler.wire.documents import BundleDocument, read_bundles
from hostler.wire.http import NodeView

NOTICE: Final = '{"kind": "terminate", "left": "25s"}'

BAD, GOOD = f"{KIOSK}-1", f"{KIOSK}-2"

SIGNS: Final = """\
bundle: signs
pool: kiosk
jobs:
  - {name: arrivals, band: silver, run: {argv: [sleep, "600"]}}
  - {name: departures, band: silver, run: {argv: [sleep, "600"]}}
  - {name: weather, band: silver, run: {argv: [sleep, "600"]}}
  - {name: news, band: silver, run: {argv: [sleep, "600"]}}
"""


async def call_a_machine_back(stage: Stage) -> None:
    """Give the notice of a spot machine under the backup, then take the machine."""
    with stage.screen.step("a spot notice for the backup's box, and the box goes") as step:
        before = await stage.allocation(BACKUP)
        node = await stage.client.node(before.node_id)
        if node.tier != OWN:
            raise DemoFailed(f"the backup is on {node.node_id}, which looks for no notice")
        began = time.monotonic()
        stage.world.write_notice(node.hostname, NOTICE)
        after = await stage.until(
            step,
            "on air elsewhere before it goes",
            lambda: stage.on_air(BACKUP, but_not=before.allocation_id),
        )
        await stage.until(step, "nothing is left there", lambda: stage.is_drained(node.node_id))
        stage.measures.spot_left_ms = ms_since(began)
        seq = await stage.newest_event()
        stage.measures.encoders_on_machine_taken = stage.world.count_encoders_of(node.hostname)
        stage.kill_node(node)
        recovered = await stage.count_events(seq, "replica_recovering")
        stage.measures.encoders_on_machine_taken += recovered
        step.done(
            f"moved to {after.node_id} with time to spare; the machine was empty when it went"
        )


async def meet_a_node_that_refuses(stage: Stage) -> None:
    """Place work where the only box cannot take it on, then add one that can."""
    with stage.screen.step("four signs, and the only box for them has a broken disk") as step:
        world = stage.world
        world.start_agent(BAD, pool=KIOSK)
        await stage.until(step, "the box is ready", lambda: stage.count_ready(KIOSK, OWN, 1))
        world.break_disk(BAD)
        began = time.monotonic()
        await stage.client.submit_bundle(read_bundles(SIGNS)[0].require())
        bad = await stage.until(step, "it is left alone", lambda: _left_alone(stage))
        stage.measures.left_alone_ms = ms_since(began)
        world.start_agent(GOOD, pool=KIOSK)
        await stage.until(step, "a good box takes them", lambda: _signs_ready(stage, bad))
        signs = await stage.client.replicas(bundle="signs")
        stage.measures.restarts_for_refusals = sum(sign.restart_count for sign in signs)
        world.mend_disk(BAD)
        step.done(f"{bad.node_id} refused and was left alone; no sign has a restart on its record")


async def _left_alone(stage: Stage) -> NodeView | None:
    for node in await stage.client.nodes(pool=KIOSK):
        if node.quarantine is not None and node.quarantine.cause == "rejections":
            return node
    return None


async def _signs_ready(stage: Stage, bad: NodeView) -> bool:
    signs = await stage.client.replicas(bundle="signs")
    return all(
        sign.allocation_phase == "ready" and sign.node_id != bad.node_id for sign in signs
    ) and bool(signs)


async def drain_both(stage: Stage) -> None:
    """Empty the primary's node for good, and the backup's for a while."""
    with stage.screen.step("drain the primary's node") as step:
        before = await stage.allocation(PRIMARY)
        began = time.monotonic()
        await stage.client.drain_node(before.node_id, deadline_ms=30_000, then_retire=True)
        after = await stage.until(
            step,
            "on air elsewhere",
            lambda: stage.on_air(PRIMARY, but_not=before.allocation_id),
        )
        stage.measures.drained_ms = ms_since(began)
        step.done(f"moved from {before.node_id} to {after.node_id}")
    with stage.screen.step("drain the backup's node, and let work onto it again") as step:
        before = await stage.allocation(BACKUP)
        began = time.monotonic()
        await stage.client.drain_node(before.node_id, deadline_ms=30_000)
        after = await stage.until(
            step,
            "on air elsewhere",
            lambda: stage.on_air(BACKUP, but_not=before.allocation_id),
        )
        await stage.until(step, "nothing is left there", lambda: stage.is_drained(before.node_id))
        stage.measures.backup_moved_ms = ms_since(began)
        await stage.client.uncordon_node(before.node_id)
        step.done(f"moved from {before.node_id} to {after.node_id}")


async def break_a_version(stage: Stage) -> None:
    """Roll out what cannot run."""
    with stage.screen.step("roll out a version that cannot encode") as step:
        primary = await stage.allocation(PRIMARY)
        began = time.monotonic()
        await stage.client.submit_bundle(_broken(stage.bundle))
        await stage.until(step, "it fails and turns back", stage.is_rolled_back)
        await stage.until(step, "the backup on air again", lambda: stage.on_air(BACKUP))
        stage.measures.rolled_back_ms = ms_since(began)
        now = await stage.allocation(PRIMARY)
        is_same = now.allocation_id == primary.allocation_id
        stage.measures.primary_restarts_on_broken_version = 0 if is_same else 1
        step.done("rolled back by itself; the primary was on air all the time")


def _broken(bundle: BundleDocument) -> BundleDocument:
    """Return the bundle with an encoder that ends at once: of a picture without a size."""
    jobs = [
        replace(job, run=replace(job.run, argv=[*job.run.argv, "--size", "none"]))
        for job in bundle.jobs
    ]
    return replace(bundle, jobs=jobs)
