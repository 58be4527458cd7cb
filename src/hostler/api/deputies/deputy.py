"""One deputy: watches its machine, and is its agent while the machine answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

import structlog

from hostler import __version__
from hostler.agent.core.effects import (
    ClearLease,
    Disconnect,
    Effect,
    Exit,
    GiveCredit,
    KillExec,
    OpenLogs,
    Reconnect,
    SendMessage,
    SignalExec,
    StartExec,
    StartSupervisor,
    WriteExec,
)
from hostler.agent.core.inputs import LogsFinished, Started, SupervisorFailed
from hostler.agent.core.state import AgentSettings
from hostler.agent.core_loop import CoreLoop
from hostler.agent.link import AgentLink, Backoff, Dial, Wire
from hostler.agent.runtime.environment import NodeIdentity
from hostler.agent.tasks import Tasks
from hostler.api import limits
from hostler.api.deputies.commands import RemoteCommands
from hostler.base.errors import HostlerError
from hostler.base.ids import MachineId
from hostler.ports.commands import CommandProvider
from hostler.wire.work import Inventory

LOG: Final = structlog.get_logger(__name__)

LEASES_ONLY: Final = (
    "a machine without an agent of ours takes leases, not bundles: see providers.md"
)

RECONNECT_S_MAX: Final = 1.0
"""Ceiling of the wait until the link is tried again; the other end is in this process."""


class Deputy:
    """The agent of one machine that has none."""

    def __init__(
        self,
        provider: CommandProvider,
        machine_id: MachineId,
        node_id: str,
        inventory: Inventory,
        *,
        incarnation: int,
        dial: Dial,
    ) -> None:
        self._provider = provider
        self._machine_id = machine_id
        self._inventory = inventory
        self._dial_server = dial
        self._unwell: str | None = "it has not been looked at yet"
        self._trouble = asyncio.Event()
        settings = AgentSettings(
            agent_version=__version__,
            node_id=node_id,
            machine_id=machine_id,
            incarnation=incarnation,
        )
        self._core = CoreLoop(settings, self._perform)
        self._tasks = Tasks(self._core.fail)
        self._link = AgentLink(
            self._dial, self._core.post, self._tasks, backoff=Backoff(RECONNECT_S_MAX)
        )
        self._commands = RemoteCommands(
            provider,
            machine_id,
            NodeIdentity(node_id=node_id, machine_id=machine_id),
            post=self._core.post,
            send=self._link.send,
            tasks=self._tasks,
            on_trouble=self._trouble.set,
        )

    async def run(self) -> None:
        """Be the machine's agent until the server wants none, or until cancelled."""
        try:
            await self._prepare()
            self._tasks.start(self._watch())
            # What an earlier life ran is cleared away; its sessions are over.
            self._core.post(Started(inventory=self._inventory))
            self._link.open()
            end = await self._core.run()
            LOG.info("deputy_ends", machine_id=self._machine_id, reason=end.reason)
        finally:
            await self._link.close()
            await self._tasks.cancel_all()

    async def _prepare(self) -> None:
        """Wait until commands can run there, and end what a former deputy left running.

        How long that may take the core knows: a node that does not become ready is given up.
        """
        pause_ms = limits.MACHINE_RETRY_MS_MIN
        while True:
            try:
                async with asyncio.timeout(limits.MACHINE_CALL_MS_MAX / 1_000):
                    found = await self._provider.probe(self._machine_id)
                    self._commands.leases_folder = f"{found.work_folder}/leases"
                    await self._provider.clear(self._machine_id, self._commands.leases_folder)
                self._unwell = None
                return
            except (HostlerError, TimeoutError) as error:
                LOG.info("machine_not_ready", machine_id=self._machine_id, error=_told(error))
            await asyncio.sleep(pause_ms / 1_000)
            pause_ms = min(pause_ms * 2, limits.MACHINE_RETRY_MS_MAX)

    async def _watch(self) -> None:
        """Look after the machine; while it does not answer, the node is not heard.

        It is looked at now and then, and soon where a call into it has failed or the last look has.
        """
        failure_count = 0
        while True:
            if failure_count:
                await asyncio.sleep(limits.MACHINE_DOUBT_MS / 1_000)
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(limits.MACHINE_PROBE_EVERY_MS / 1_000):
                        await self._trouble.wait()
            self._trouble.clear()
            try:
                async with asyncio.timeout(limits.MACHINE_CALL_MS_MAX / 1_000):
                    await self._provider.probe(self._machine_id)
            except (HostlerError, TimeoutError) as error:
                failure_count += 1
                if failure_count == limits.MACHINE_PROBE_FAILURES_MAX:
                    self._unwell = _told(error)
                    LOG.warning("machine_silent", machine_id=self._machine_id, why=self._unwell)
                    self._link.reconnect(self._unwell)
            else:
                failure_count = 0
                self._unwell = None

    @contextlib.asynccontextmanager
    async def _dial(self) -> AsyncIterator[Wire]:
        if self._unwell is not None:
            raise ConnectionError(f"the machine does not answer: {self._unwell}")
        async with self._dial_server() as wire:
            yield wire

    def _perform(self, effect: Effect) -> None:
        match effect:
            case SendMessage():
                self._link.send(effect.message)
            case Reconnect():
                self._link.reconnect(effect.reason)
            case Disconnect():
                self._link.disconnect(effect.reason)
            case Exit():
                self._core.end(effect)
            case StartSupervisor():
                self._core.post(
                    SupervisorFailed(key=effect.key, message=LEASES_ONLY, is_refusal=True)
                )
            case OpenLogs():
                self._core.post(LogsFinished(request_id=effect.request_id, error=LEASES_ONLY))
            case _:
                self._perform_command(effect)

    def _perform_command(self, effect: Effect) -> None:
        match effect:
            case StartExec():
                self._commands.start(effect.start, tail_bytes=effect.tail_bytes)
            case WriteExec():
                self._commands.write(effect.data)
            case SignalExec():
                self._commands.signal(effect.request_id, effect.signal)
            case KillExec():
                self._commands.kill(effect.request_id)
            case ClearLease():
                self._commands.clear(effect.key)
            case GiveCredit():
                self._commands.credit(effect.request_id, effect.bytes_count)
            case _:
                # Authority is kept in memory, and of allocations nothing was ever started.
                pass


def _told(error: Exception) -> str:
    return str(error) or "it did not answer in time"
