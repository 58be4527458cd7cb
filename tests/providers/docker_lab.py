"""A real container engine as the place where the provider `docker` is tried."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from hostler.base.ids import MachineId
from hostler.engine.clock import SystemClock
from hostler.ports.provider import (
    CapacityUnavailable,
    CredentialsRejected,
    LaunchRequest,
    OutcomeUnknown,
    ProviderContext,
    ProviderFailed,
    QuotaExceeded,
    RequestInvalid,
    Throttled,
)
from hostler.providers.docker.options import DockerOptions, Ulimit
from hostler.providers.docker.provider import DockerProvider
from hostler.providers.docker.tags import machine_id_of
from hostler.testing.provider_conformance import Provocation
from tests.machines import IMAGE, ContainerEngine
from tests.providers.labs import launch_request

ULIMITS = {"nofile": Ulimit(soft=1024, hard=4096), "nproc": Ulimit(soft=1024, hard=1024)}
"""Without them runc fails where our own limits are lower than the engine's defaults."""


class DockerLab:
    def __init__(self, engine: ContainerEngine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.clock = SystemClock()
        self._opened: list[DockerProvider] = []

    def options(self, **changed: Any) -> DockerOptions:
        told = {
            "image": IMAGE,
            "socket": self.engine.socket,
            "pull": "never",
            "network": "none",
            "ulimits": ULIMITS,
        }
        return DockerOptions(**{**told, **changed})

    async def open(self, fleet_id: str = "f-ours") -> DockerProvider:
        provider = DockerProvider(
            ProviderContext(fleet_id=fleet_id, folder=self.folder, clock=self.clock)
        )
        self._opened.append(provider)
        return provider

    def request(
        self, token: str, fleet_id: str = "f-ours", options: DockerOptions | None = None
    ) -> LaunchRequest:
        return launch_request(token, fleet_id, options or self.options())

    async def leave_half_born(self, request: LaunchRequest) -> None:
        provider = await self.open(request.fleet_id)
        engine = provider._engine(self.engine.socket)
        await provider._remember(engine)
        machine_id = machine_id_of(self.engine.socket, request.fleet_id, request.token)
        assert isinstance(request.options, DockerOptions)
        await provider._create(engine, machine_id, request, request.options)

    async def make_foreign(self) -> MachineId:
        # Its name is as ours are, and its label is missing.
        machine_id = machine_id_of(self.engine.socket, "f-ours", "foreign")
        argv = ["run", "-d", "--network=none", f"--name={machine_id}", IMAGE, "/bin/sleep", "600"]
        await asyncio.to_thread(self.engine.podman, *argv)
        return machine_id

    async def inspect(self, machine_id: str) -> dict[str, Any] | None:
        told = await asyncio.to_thread(
            self.engine.podman, "ps", "--all", "--format=json", f"--filter=name=^{machine_id}$"
        )
        rows = json.loads(told)
        return rows[0] if rows else None

    async def is_running(self, machine_id: MachineId) -> bool:
        row = await self.inspect(machine_id)
        return row is not None and row["State"] == "running"

    def provocations(self) -> Mapping[type[ProviderFailed], Provocation]:
        return {
            RequestInvalid: Provocation(lambda: self._launch(image="localhost/no-such-image")),
            CapacityUnavailable: Provocation(lambda: self._launch(socket="/no/such/socket")),
            QuotaExceeded: Provocation(lambda: self._launch(machines_max=0)),
            CredentialsRejected: Provocation(lambda: self._launch_answered(403)),
            Throttled: Provocation(lambda: self._launch_answered(429)),
            OutcomeUnknown: Provocation(self._lose_the_answer, has_effect=True),
        }

    async def _launch(self, **changed: Any) -> None:
        provider = await self.open()
        await provider.launch(self.request("n-9/launch/1", options=self.options(**changed)))

    async def _launch_answered(self, status: int) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 2\r\n\r\n{{}}".encode())
            writer.close()

        path = f"{self.engine.socket}-{status}"
        async with await asyncio.start_unix_server(answer, path):
            await self._launch(socket=path)

    async def _lose_the_answer(self) -> None:
        async with self.cutting(b"POST /v1.41/containers/create") as path:
            await self._launch(socket=path)

    @asynccontextmanager
    async def cutting(self, call: bytes) -> AsyncIterator[str]:
        """A way to the engine on which the answer to one kind of call is lost."""

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there, back = await asyncio.open_unix_connection(self.engine.socket)
            is_cut = False

            async def forth() -> None:
                nonlocal is_cut
                while data := await reader.read(65_536):
                    is_cut = is_cut or data.startswith(call)
                    back.write(data)

            going = asyncio.ensure_future(forth())
            while data := await there.read(65_536):
                if is_cut:
                    break
                writer.write(data)
            going.cancel()
            await asyncio.gather(going, return_exceptions=True)
            back.close()
            writer.close()

        path = f"{self.engine.socket}-cut"
        async with await asyncio.start_unix_server(carry, path):
            yield path

    def never_fails_with(self) -> Mapping[type[ProviderFailed], str]:
        return {}

    async def clean_up(self) -> None:
        for provider in self._opened:
            await provider.close()
        await asyncio.to_thread(self.engine.remove_all)


def with_silence(request: LaunchRequest, silence_ms: int) -> LaunchRequest:
    return msgspec.structs.replace(request, silence_ms_max=silence_ms)
