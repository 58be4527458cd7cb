"""Faults: what goes wrong by itself, each kind with a random stream of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from hostler.agent.core.inputs import NoticeRead
from hostler.base.ids import MachineId
from hostler.base.rng import Stream
from hostler.engine.boundaries import Boundary
from hostler.model.node import NoticeKind
from hostler.sim.machine import Machine
from hostler.sim.scenario import (
    BreakLinks,
    CrashAgents,
    CrashServer,
    Fault,
    JumpClock,
    KillMachines,
    Partition,
    PauseAgents,
    RejectStarts,
    RestartEverything,
    TakeBack,
)
from hostler.sim.workloads.rhythm import keep_doing

if TYPE_CHECKING:
    from hostler.sim.history import History

_LOADING = (
    Boundary.AFTER_CLAIM_BEFORE_LOAD,
    Boundary.DURING_LOAD,
    Boundary.AFTER_LOAD_BEFORE_START,
)


def let_go_wrong(history: History, fault: Fault) -> None:
    """Begin one kind of fault."""
    world = history.world
    kind = str(type(fault).__struct_config__.tag)
    rng = world.stream("fault", kind)
    act = _ACTS[type(fault)]
    keep_doing(world, rng, fault.per_hour, partial(act, history, rng, fault))


def _crash_server(history: History, rng: Stream, fault: CrashServer) -> None:
    server = history.server
    match fault.at:
        case "any-instant":
            server.crash("killed")
        case "any-durable-boundary":
            choice = rng.below(len(Boundary) + 2)
            if choice >= len(Boundary):
                server.crash("killed")
            else:
                _doom(history, list(Boundary)[choice])
        case name:
            _doom(history, Boundary(name))


def _doom(history: History, boundary: Boundary) -> None:
    history.server.doomed_at = boundary
    if boundary in _LOADING:
        history.server.crash("killed, and the next life will not get far")


def _partition(history: History, rng: Stream, fault: Partition) -> None:
    hosts = [m.machine_id for m in history.hardware.running() if rng.chance(fault.share_ppm)]
    is_upward, is_downward = ((True, True), (True, False), (False, True))[rng.below(3)]
    network = history.network
    history.world.log(f"partition of {len(hosts)} up={is_upward} down={is_downward}")
    for host in hosts:
        network.cut(host, is_upward=is_upward, is_downward=is_downward)
    history.world.probe("network.partition")

    def heal() -> None:
        if not history.world.is_calm:
            for host in hosts:
                network.heal(host, is_upward=is_upward, is_downward=is_downward)

    history.world.after(rng.between(*fault.stability_ms), heal)


def _any_running(history: History, rng: Stream) -> Machine | None:
    running = history.hardware.running()
    return rng.choice(running) if running else None


def _break_link(history: History, rng: Stream, _: BreakLinks) -> None:
    machine = _any_running(history, rng)
    if machine is not None and machine.agent is not None:
        connection = machine.agent.connection
        if connection is not None:
            history.world.probe("network.link_broken")
            connection.break_off()


def _kill_machine(history: History, rng: Stream, fault: KillMachines) -> None:
    machine = _any_running(history, rng)
    if machine is None:
        return
    known = history.cloud.machines.get(MachineId(machine.machine_id))
    if known is None:
        history.world.probe("machine.rebooted")
        machine.die()
        history.world.after(rng.between(*fault.reboot_ms), machine.boot)
    elif rng.chance(fault.freezes_ppm):
        history.world.probe("machine.froze")
        machine.die()
    else:
        history.world.probe("machine.vanished")
        history.cloud.end(known, "it died")


def _crash_agent(history: History, rng: Stream, fault: CrashAgents) -> None:
    machine = _any_running(history, rng)
    if machine is None:
        return
    alive = [key for key, each in sorted(machine.supervisor_by_key.items()) if each.is_alive]
    if alive and rng.chance(fault.supervisor_ppm):
        history.world.probe("supervisor.killed")
        machine.kill_supervisor(rng.choice(alive))
    elif machine.agent is not None and rng.chance(500_000):
        machine.agent.dies_after_effects = rng.below(6)
    else:
        machine.crash_agent()


def _pause_agent(history: History, rng: Stream, fault: PauseAgents) -> None:
    machine = _any_running(history, rng)
    if machine is not None and machine.agent is not None:
        history.world.probe("agent.paused")
        machine.agent.pause(rng.between(*fault.pause_ms))


def _jump_clock(history: History, rng: Stream, fault: JumpClock) -> None:
    is_forward = rng.chance(500_000)
    by_ms = rng.between(*fault.forward_ms) if is_forward else -rng.between(*fault.backward_ms)
    history.world.probe("server.clock_jumped")
    history.server.jump_clock(by_ms)


def _take_back(history: History, rng: Stream, fault: TakeBack) -> None:
    """Tell the agent, or whoever asks the provider, that a machine is wanted back; then end it."""
    machine = _any_running(history, rng)
    known = None if machine is None else history.cloud.machines.get(MachineId(machine.machine_id))
    if machine is None or known is None:
        return
    left_ms = rng.between(*fault.notice_ms)
    is_false, is_by_agent = rng.chance(fault.false_ppm), rng.chance(500_000)
    history.world.probe("machine.noticed")
    if is_by_agent and machine.agent is not None:
        kind: Literal["rebalance", "terminate"] = "rebalance" if is_false else "terminate"
        machine.agent.take(NoticeRead(kind=kind, left_ms=left_ms))
    else:
        known.notice = NoticeKind.REBALANCE if is_false else NoticeKind.TERMINATE
        known.ends_at_ms = history.world.now_ms + left_ms
    if not is_false:
        history.world.after(left_ms, history.cloud.end, known, "taken back")


def _reject_starts(history: History, rng: Stream, fault: RejectStarts) -> None:
    machine = _any_running(history, rng)
    if machine is not None:
        history.world.probe("agent.rejects")
        machine.rejects_until_ms = history.world.now_ms + rng.between(*fault.for_ms)


def _restart_everything(history: History, rng: Stream, fault: RestartEverything) -> None:
    history.world.probe("world.restarted")
    history.server.crash("the power has failed")
    own = history.hardware.own()
    for machine in history.hardware.running():
        if machine in own:
            machine.die()
            history.world.after(rng.between(*fault.off_ms), machine.boot)
        else:
            machine.crash_agent()


_ACTS: dict[type[Fault], Callable[[History, Stream, Any], None]] = {
    BreakLinks: _break_link,
    CrashAgents: _crash_agent,
    CrashServer: _crash_server,
    JumpClock: _jump_clock,
    KillMachines: _kill_machine,
    Partition: _partition,
    PauseAgents: _pause_agent,
    RejectStarts: _reject_starts,
    RestartEverything: _restart_everything,
    TakeBack: _take_back,
}
