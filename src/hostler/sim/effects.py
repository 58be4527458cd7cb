"""An agent's hands: every effect that its core wants, carried out in the world."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from hostler.agent.core.effects import (
    ClearLease,
    CloseStream,
    Disconnect,
    Effect,
    Exit,
    GiveCredit,
    KillExec,
    KillProcess,
    KillSupervisor,
    OpenLogs,
    Probe,
    Reconnect,
    RememberAuthority,
    RememberReady,
    RemoveFolder,
    SendMessage,
    SignalExec,
    StartExec,
    StartSupervisor,
    StopProcess,
    TellNotice,
    WriteConfig,
    WriteExec,
    WriteRole,
)
from hostler.agent.core.inputs import (
    ConfigWritten,
    LogsFinished,
    ProbeAnswered,
    RoleWritten,
    SupervisorFailed,
    SupervisorStarted,
)
from hostler.sim.world import Violation

if TYPE_CHECKING:
    from hostler.sim.agent import AgentProcess

ProcessEffect = StartSupervisor | StopProcess | KillProcess | KillSupervisor | Probe
DiskEffect = RememberReady | RememberAuthority | RemoveFolder | WriteConfig | WriteRole


def carry_out(agent: AgentProcess, effect: Effect) -> None:
    """Carry one effect out; what it leads to comes back as inputs."""
    match effect:
        case SendMessage():
            agent.send(effect.message)
        case Reconnect():
            agent.end_connection(is_final=False)
        case Disconnect():
            agent.end_connection(is_final=True)
        case Exit():
            agent.machine.agent_exited(effect.reason)
        case GiveCredit() | WriteExec() | SignalExec() | TellNotice():
            pass  # data passes by the core, and the world has none; its jobs read no notices
        case OpenLogs() | CloseStream():
            agent.soon(LogsFinished(request_id=effect.request_id), delay_ms=5)
        case StartExec() | KillExec() | ClearLease():
            _lease(agent, effect)
        case RememberReady() | RememberAuthority() | RemoveFolder() | WriteConfig() | WriteRole():
            _write(agent, effect)
        case _:
            _supervise(agent, effect)


def _supervise(agent: AgentProcess, effect: ProcessEffect) -> None:
    machine = agent.machine
    supervisor = machine.supervisor_by_key.get(effect.key)
    match effect:
        case StartSupervisor() if not machine.enrolment.has_agent:
            # A deputy would refuse it; that it is asked at all is a fault of whoever placed it.
            raise Violation("job_without_agent", "a job is to start where no agent runs")
        case StartSupervisor():
            if machine.start_supervisor(effect.key, effect.start):
                agent.soon(SupervisorStarted(key=effect.key), delay_ms=machine.rng.below(50))
            else:
                agent.soon(SupervisorFailed(key=effect.key, message="made up"))
        case StopProcess():
            if supervisor is not None:
                supervisor.stop(effect.grace_ms)
        case KillProcess():
            if supervisor is not None:
                supervisor.kill()
        case KillSupervisor():
            machine.kill_supervisor(effect.key)
            machine.world.after(0, agent.lose, effect.key)
        case Probe():
            is_warm = supervisor is not None and supervisor.is_warm
            agent.soon(
                ProbeAnswered(key=effect.key, probe_id=effect.probe_id, is_success=is_warm),
                delay_ms=machine.rng.between(1, 100),
            )
        case _:
            assert_never(effect)


def _write(agent: AgentProcess, effect: DiskEffect) -> None:
    machine = agent.machine
    match effect:
        case RememberReady():
            folder = machine.disk.folder_by_key.get(effect.key)
            if folder is not None:
                folder.was_ready = True
        case RememberAuthority():
            machine.remember_authority(effect.until_at_ms)
        case RemoveFolder():
            machine.forget(effect.key)
        case WriteConfig():
            machine.configure(effect.key, effect.config.number)
            agent.soon(ConfigWritten(key=effect.key, number=effect.config.number))
        case WriteRole():
            machine.assign_role(effect.key, effect.role)
            agent.soon(RoleWritten(key=effect.key, term=effect.term))
        case _:
            assert_never(effect)


def _lease(agent: AgentProcess, effect: StartExec | KillExec | ClearLease) -> None:
    leased = agent.leased
    match effect:
        case StartExec():
            leased.start(effect.start)
        case KillExec():
            leased.kill(effect.request_id)
        case ClearLease():
            leased.clear(effect.key)
        case _:
            assert_never(effect)
