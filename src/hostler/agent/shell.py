"""Carries out what the core decides, on the node that it runs on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

import structlog

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
from hostler.agent.core.inputs import Input, ProbeAnswered, Started
from hostler.agent.core.state import AgentSettings
from hostler.agent.core_loop import CoreLoop
from hostler.agent.exec import ExecRunner
from hostler.agent.folder import DataFolder
from hostler.agent.link import AgentLink
from hostler.agent.notices import NoticeSource, watch
from hostler.agent.probes import probe
from hostler.agent.runtime.environment import NodeIdentity, work_folder
from hostler.agent.runtime.process import ProcessRuntime
from hostler.agent.streams import LogStreams
from hostler.agent.tasks import Tasks
from hostler.wire.work import ExecReadiness, Inventory

LOG: Final = structlog.get_logger("hostler.agent")

SupervisionEffect = (
    StartSupervisor
    | StopProcess
    | KillProcess
    | KillSupervisor
    | WriteConfig
    | WriteRole
    | Probe
    | RememberReady
    | RemoveFolder
)
StreamEffect = (
    StartExec | WriteExec | SignalExec | KillExec | ClearLease | OpenLogs | CloseStream | GiveCredit
)


class AgentShell:
    """One life of an agent around its core."""

    def __init__(
        self,
        settings: AgentSettings,
        data: DataFolder,
        node: NodeIdentity,
        connect: Callable[[Callable[[Input], None], Tasks], AgentLink],
        notice_source: NoticeSource = NoticeSource(),  # noqa: B008 - it is immutable
    ) -> None:
        self._notice_source = notice_source
        self._data = data
        self._core = CoreLoop(settings, self._perform)
        self.post = self._core.post
        self._tasks = Tasks(self._core.fail)
        self._link = connect(self.post, self._tasks)
        self._runtime = ProcessRuntime(data, node, self.post, self._tasks)
        self._execs = ExecRunner(data, node, self.post, self._link.send, self._tasks)
        self._logs = LogStreams(data, self.post, self._link.send, self._tasks)

    async def run(self, inventory: Inventory) -> int:
        """Live until the core says that it is over; gives the exit code."""
        self._runtime.open()
        self._data.forget_notice()
        try:
            found = await self._runtime.find()
            LOG.info("agent started", node=self._core.settings.node_id, adopted=len(found))
            self.post(
                Started(
                    inventory=inventory,
                    found=found,
                    found_leases=self._data.found_leases(),
                    authority_until_at_ms=self._authority(is_needed=bool(found)),
                )
            )
            self._link.open()
            if self._notice_source.is_given:
                self._tasks.start(watch(self._notice_source, self.post))
            end = await self._core.run()
            LOG.info("agent ends", reason=end.reason)
            return end.code
        finally:
            await self._close()

    def _authority(self, *, is_needed: bool) -> int | None:
        """Read until when our last life was authorised; work without a word about it was never."""
        until_at_ms = self._data.read_authority(self._core.clock)
        return 0 if until_at_ms is None and is_needed else until_at_ms

    async def _close(self) -> None:
        await self._execs.close()
        await self._link.close()
        await self._tasks.cancel_all()
        self._runtime.close()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case SendMessage():
                self._link.send(effect.message)
            case Reconnect():
                self._link.reconnect(effect.reason)
            case Disconnect():
                self._link.disconnect(effect.reason)
            case RememberAuthority():
                self._data.write_authority(self._core.clock.to_boot_ms(effect.until_at_ms))
            case TellNotice():
                self._data.write_notice(effect.kind, effect.ends_at_ms)
            case Exit():
                self._core.end(effect)
            case (
                StartExec()
                | WriteExec()
                | SignalExec()
                | KillExec()
                | ClearLease()
                | OpenLogs()
                | CloseStream()
                | GiveCredit()
            ):
                self._perform_stream(effect)
            case _:
                self._perform_supervision(effect)

    def _perform_supervision(self, effect: SupervisionEffect) -> None:
        match effect:
            case StartSupervisor():
                self._runtime.start(effect.key, effect.start)
            case StopProcess():
                self._runtime.stop(effect.key, effect.signal, effect.grace_ms)
            case KillProcess():
                self._runtime.stop(effect.key, "SIGKILL", 0)
            case KillSupervisor():
                self._runtime.kill_supervisor(effect.key)
            case WriteConfig():
                self._runtime.configure(effect.key, effect.config)
            case WriteRole():
                self._runtime.assign_role(effect.key, effect.role, effect.term)
            case Probe():
                self._tasks.start(self._probe(effect))
            case RememberReady():
                self._runtime.remember_ready(effect.key)
            case RemoveFolder():
                self._runtime.remove(effect.key)
            case _:
                assert_never(effect)

    def _perform_stream(self, effect: StreamEffect) -> None:
        match effect:
            case StartExec():
                self._execs.start(effect.start, tail_bytes=effect.tail_bytes)
            case WriteExec():
                self._execs.write(effect.data)
            case SignalExec():
                self._execs.signal(effect.request_id, effect.signal)
            case KillExec():
                self._execs.kill(effect.request_id)
            case ClearLease():
                self._execs.clear(effect.key)
            case OpenLogs():
                self._logs.open(effect)
            case CloseStream():
                self._logs.close_one(effect.request_id)
            case GiveCredit():
                if not self._execs.credit(effect.request_id, effect.bytes_count):
                    self._logs.credit(effect.request_id, effect.bytes_count)
            case _:
                assert_never(effect)

    async def _probe(self, effect: Probe) -> None:
        is_exec = isinstance(effect.readiness, ExecReadiness)
        env = self._runtime.environment(effect.key) if is_exec else {}
        cwd = work_folder(self._runtime.folder(effect.key))
        is_success = await probe(effect.readiness, env=env, cwd=cwd)
        self.post(ProbeAnswered(key=effect.key, probe_id=effect.probe_id, is_success=is_success))
