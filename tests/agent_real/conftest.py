"""A real agent in a process of its own, against a tiny server; nothing may be left at the end."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from hostler.agent.core.inputs import AllocationKey
from hostler.agent.folder import DataFolder
from hostler.agent.runtime import supervised
from hostler.agent.strays import marked
from hostler.wire.agent import JoinResponse, StartAllocation, StopAllocation
from hostler.wire.work import Identity, Launch
from tests.agent_real.server import TinyServer
from tests.eventually import eventually_async

RUNNER = Path(__file__).with_name("runner.py")
ENDS_WITHIN_S = 30.0


class RealAgent:
    """An agent's data folder and, most of the time, its process."""

    def __init__(self, folder: Path, server: TinyServer) -> None:
        self.data = DataFolder(folder)
        self.server = server
        self.node_id = f"n-{secrets.token_hex(6)}"
        self.process: asyncio.subprocess.Process | None = None
        self.options: dict[str, object] = {}

    async def start(self, **options: object) -> None:
        self.options |= options
        self.data.path.mkdir(parents=True, exist_ok=True)
        self.data.write_identity(JoinResponse(node_id=self.node_id, credential="secret"))
        hellos = len(self.server.hellos)
        told = {
            "server_url": self.server.url,
            "data_folder": str(self.data.path),
            "reconnect_ms_max": 200,
        } | self.options
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, str(RUNNER), msgspec.json.encode(told).decode()
        )
        if not self.server.is_deaf:
            await self.server.greeted(hellos + 1)

    async def kill(self) -> None:
        """`kill -9`, as the kernel does it when memory runs out."""
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def ends(self, number: signal.Signals | None = None) -> int:
        assert self.process is not None
        if number is not None:
            self.process.send_signal(number)
        async with asyncio.timeout(ENDS_WITHIN_S):
            return await self.process.wait()

    def folder(self, allocation_id: str, epoch: int = 1) -> Path:
        return self.data.allocation(AllocationKey(allocation_id, epoch))

    def supervisor_pid(self, allocation_id: str) -> int:
        pid = supervised.holder_pid(self.folder(allocation_id))
        assert pid is not None
        return pid

    def processes(self) -> list[int]:
        """All processes of this node: supervisors, jobs, leased commands, the warden."""
        return marked(f"HOSTLER_NODE_ID={self.node_id}\0")

    async def nothing_is_left(self) -> None:
        async def probe() -> bool:
            return not self.processes()

        await eventually_async(probe, what="no process of the node is left")


@pytest.fixture
async def server() -> AsyncIterator[TinyServer]:
    async with TinyServer() as running:
        yield running


@pytest.fixture
async def agent(tmp_path: Path, server: TinyServer) -> AsyncIterator[RealAgent]:
    real = RealAgent(tmp_path / "node", server)
    yield real
    if real.process is not None and real.process.returncode is None:
        await real.ends(signal.SIGINT)
    try:
        await real.nothing_is_left()
    finally:
        for pid in real.processes():
            os.kill(pid, signal.SIGKILL)


def a_launch(*argv: str, **more: object) -> Launch:
    facts: dict[str, object] = {
        "argv": list(argv),
        "stop_grace_ms": 2_000,
        "identity": Identity(fleet_id="f", bundle_id="live", job="encoder", role="primary"),
    }
    return msgspec.convert(facts | more, Launch, from_attributes=True)


def a_script(code: str, **more: object) -> Launch:
    """A job written in Python."""
    return a_launch(sys.executable, "-u", "-c", code, **more)


def a_start(launch: Launch, allocation_id: str = "a-1") -> StartAllocation:
    return StartAllocation(
        command_id=f"{allocation_id}/start/1",
        node_epoch=1,
        allocation_id=allocation_id,
        epoch=1,
        launch=launch,
    )


def a_stop(allocation_id: str = "a-1", grace_ms: int = 5_000) -> StopAllocation:
    return StopAllocation(
        command_id=f"{allocation_id}/stop/1",
        node_epoch=1,
        allocation_id=allocation_id,
        epoch=1,
        grace_ms=grace_ms,
    )
