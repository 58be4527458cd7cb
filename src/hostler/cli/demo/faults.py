"""Chapters in which something breaks: machines, the network, the server, everything, the clock."""

from __future__ import annotations

import time
from typing import Final

from hostler.cli.demo.failure import DemoFailed
from hostler.cli.demo.stage import OWN, PRIMARY, Stage, ms_since
from hostler.wire.http import AllocationView, NodeView

AHEAD_MS: Final = 300_000
"""How far the server's clock jumps: ten times what makes a silent node lost."""
BACK_MS: Final = -3_600_000
"""How far the clocks of the boxes jump."""
WATCHED_MS: Final = 2_500
"""How long the server then has to draw wrong conclusions: several of its looks and heartbeats."""


async def lose_a_node(stage: Stage) -> None:
    """Kill the node of the primary."""
    with stage.screen.step("kill -9 the primary's node: agent, supervisor, encoder") as step:
        before = await stage.allocation(PRIMARY)
        node = await stage.client.node(before.node_id)
        spare = await stage.until(step, "a spare at hand", stage.spare)
        began = time.monotonic()
        count = stage.kill_node(node)
        after = await stage.until(
            step,
            "silence, fencing, then the spare",
            lambda: stage.on_air(PRIMARY, but_not=before.allocation_id),
        )
        stage.measures.recovered_ms = ms_since(began)
        if after.node_id != spare.node_id:
            raise DemoFailed(f"recovered on {after.node_id}, not on the spare {spare.node_id}")
        step.done(f"{count} processes died; on air again on the spare {after.node_id}")
    with stage.screen.step("the spare is replaced") as step:
        fresh = await stage.until(step, "a new spare", lambda: stage.spare(but_not=spare.node_id))
        stage.measures.spare_refilled_ms = ms_since(began)
        step.done(f"{fresh.node_id} stands by")


async def cut_a_box_off(stage: Stage) -> None:
    """Pull the cable of the primary's box, for less and then for more than the limits allow."""
    before = await stage.allocation(PRIMARY)
    node = await stage.client.node(before.node_id)
    if node.tier != OWN:
        raise DemoFailed(f"the primary is on {node.node_id}, which has no cable")
    await _cut_for_less(stage, node)
    await _cut_for_more(stage, node, before)
    stage.world.relax_limits()
    await stage.client.reload_config()


async def _cut_for_less(stage: Stage, node: NodeView) -> None:
    cable = stage.world.cables[node.hostname]
    with stage.screen.step("pull the cable of the primary's box, and mend it in time") as step:
        encoders, copies = stage.world.encoders(), await stage.copies()
        cable.pull()
        await stage.until(step, "silence is noticed", lambda: _is(stage, node, "suspect"))
        cable.mend()
        await stage.until(step, "it is heard again", lambda: _is(stage, node, "live"))
        stage.measures.copies_changed_by_short_cut = await stage.count_changed(copies, encoders)
        step.done("suspected, heard again, and nothing else happened")


async def _cut_for_more(stage: Stage, node: NodeView, before: AllocationView) -> None:
    cable = stage.world.cables[node.hostname]
    with stage.screen.step("pull it for longer than its work may go on alone") as step:
        began = time.monotonic()
        cable.pull()
        after = await stage.until(
            step,
            "the box stops its encoder, then another starts",
            lambda: stage.on_air(PRIMARY, but_not=before.allocation_id),
        )
        stage.measures.cut_off_recovered_ms = ms_since(began)
        former, fresh = await stage.segments(before), await stage.segments(after)
        # What both have put on air says it, whatever anybody believed at the time.
        ends_at_ms = former[-1].at_ms + former[-1].length_ms
        stage.measures.copies_at_once_ms = max(0, ends_at_ms - fresh[0].at_ms)
        cable.mend()
        await stage.until(step, "the box is back", lambda: _is(stage, node, "live"))
        dark_ms = fresh[0].at_ms - ends_at_ms
        step.done(f"dark for {dark_ms / 1_000:.1f} s in between; on air now on {after.node_id}")


async def _is(stage: Stage, node: NodeView, health: str) -> bool:
    return (await stage.client.node(node.node_id)).health == health


async def kill_the_server(stage: Stage) -> None:
    """Kill the server, and look what the next one knows."""
    with stage.screen.step("kill -9 the server, and start it again on the same file") as step:
        held = (await stage.held_lease()).view
        await stage.until(step, "another warm runner in its place", stage.all_ready)
        nodes = {node.node_id: node.phase for node in await stage.client.nodes()}
        encoders, copies = stage.world.encoders(), await stage.copies()
        began = time.monotonic()
        stage.world.kill_server()
        stage.world.start_server()
        await stage.until(step, "the server answers", stage.answers)
        stage.measures.server_restart_gap_ms = ms_since(began)
        await stage.until(step, "its agents are back", stage.all_connected)
        stage.measures.encoder_restarts_on_server_kill = await stage.count_changed(copies, encoders)
        is_held = await stage.is_still_ours(held)
        stage.measures.leases_lost_on_server_kill = 0 if is_held else 1
        now = {node.node_id: node.phase for node in await stage.client.nodes()}
        stage.measures.nodes_changed_on_server_kill = len(set(nodes.items()) ^ set(now.items()))
        step.done(f"{len(encoders)} encoders went on; lease {held.lease_id} is still ours")


async def restart_everything(stage: Stage) -> None:
    """Kill the server and every agent in one go, and start them all again."""
    with stage.screen.step("kill -9 the server and all agents at once, start all again") as step:
        held = (await stage.held_lease()).view
        await stage.until(step, "all nodes settled", stage.all_ready)
        nodes = {node.node_id: node.epoch for node in await stage.client.nodes()}
        encoders, copies = stage.world.encoders(), await stage.copies()
        seq = await stage.newest_event()
        began = time.monotonic()
        count = stage.world.kill_all_but_work()
        stage.world.start_all_again()
        await stage.until(step, "the server answers", stage.answers)
        await stage.until(step, "all agents are back", stage.all_connected)
        await stage.until(step, "all are heard", lambda: _all_live(stage))
        stage.measures.restarted_all_ms = ms_since(began)
        stage.measures.copies_changed_by_restart_of_all = await stage.count_changed(
            copies, encoders
        )
        now = {node.node_id: node.epoch for node in await stage.client.nodes()}
        lost = await stage.count_events(seq, "node_lost")
        wrong = len(set(nodes.items()) - set(now.items())) + lost
        stage.measures.books_changed_by_restart_of_all = wrong + (
            0 if await stage.is_still_ours(held) else 1
        )
        step.done(f"{count} processes died; every encoder is the one that it was")


async def _all_live(stage: Stage) -> bool:
    nodes = await stage.client.nodes()
    return all(node.health == "live" for node in nodes if node.is_connected)


async def set_the_clocks(stage: Stage) -> None:
    """Let the server's clock jump ahead, and those of the boxes back."""
    minutes, hours = AHEAD_MS // 60_000, -BACK_MS // 3_600_000
    title = f"the server's clock jumps {minutes} min ahead, those of the boxes {hours} h back"
    with stage.screen.step(title) as step:
        held = (await stage.held_lease()).view
        await stage.until(step, "all nodes settled", stage.all_ready)
        encoders, copies = stage.world.encoders(), await stage.copies()
        seq = await stage.newest_event()
        clock_ms = (await stage.client.status()).now_ms
        for name in stage.world.agents:
            stage.world.set_clock(name, BACK_MS)
        stage.world.set_clock("server", AHEAD_MS)
        began = time.monotonic()
        await stage.until(step, "it goes by the new time", lambda: _is_past(stage, clock_ms))
        await stage.until(step, "heartbeats since", lambda: _has_passed(began))
        await stage.until(step, "everybody is heard", lambda: _all_live(stage))
        lost = await stage.count_events(seq, "node_lost", "node_suspected")
        stage.measures.nodes_doubted_on_clock_jump = lost
        changed = await stage.count_changed(copies, encoders)
        is_held = await stage.is_still_ours(held)
        stage.measures.holds_changed_on_clock_jump = changed + (0 if is_held else 1)
        step.done("nobody was thought silent, nothing was started or stopped for it")


async def _is_past(stage: Stage, clock_ms: int) -> bool:
    return (await stage.client.status()).now_ms >= clock_ms + AHEAD_MS


async def _has_passed(began: float) -> bool:
    return ms_since(began) >= WATCHED_MS
