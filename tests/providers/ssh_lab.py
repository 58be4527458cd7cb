"""Real sshd processes as the place where the provider `ssh` is tried."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from hostler.base.encoding import encode
from hostler.base.ids import MachineId
from hostler.engine.clock import SystemClock
from hostler.ports.commands import LEASE_MARK
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
from hostler.providers.ssh.options import HostAddress, SshOptions, hosts_of
from hostler.providers.ssh.provider import SshProvider
from hostler.providers.ssh.scripts import take_script
from hostler.testing.provider_conformance import Provocation
from tests.machines import SshHost, free_port, make_key
from tests.providers.labs import launch_request


class Hosts:
    """Some hosts that let one key in, for all tests of a process."""

    def __init__(self, folder: Path, count: int) -> None:
        self.key = make_key(folder / "key")
        self.stranger_key = make_key(folder / "stranger")
        self.hosts = [SshHost(folder / f"host-{index}", self.key) for index in range(count)]

    def start(self) -> None:
        for host in self.hosts:
            host.start()

    def clean(self) -> None:
        """End what runs on the hosts under a mark, and remove what is ours there."""
        for host in self.hosts:
            for pid in marked(str(host.home)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(host.home / ".hostler", ignore_errors=True)

    def stop(self) -> None:
        self.clean()
        for host in self.hosts:
            with suppress(FileNotFoundError):
                host.cut_connections()
            host.stop()


def marked(folder: str) -> list[int]:
    """The processes with a mark in a folder, as the kernel shows them."""
    needle = f"{LEASE_MARK}={folder}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if needle in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


@contextmanager
def ssh_hosts(folder: Path, count: int) -> Iterator[Hosts]:
    hosts = Hosts(folder, count)
    try:
        hosts.start()
        yield hosts
    finally:
        hosts.stop()


class SshLab:
    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self.hosts = hosts
        self.folder = folder
        self.clock = SystemClock()
        self._opened: list[SshProvider] = []

    def addresses(self) -> list[HostAddress]:
        return [
            HostAddress(host="127.0.0.1", port=host.port, host_key=host.host_key)
            for host in self.hosts.hosts
        ]

    def options(self, **changed: Any) -> SshOptions:
        told = {"hosts": self.addresses(), "key": str(self.hosts.key), "connect": "5s"}
        return SshOptions(**{**told, **changed})

    async def open(self, fleet_id: str = "f-ours") -> SshProvider:
        provider = SshProvider(
            ProviderContext(fleet_id=fleet_id, folder=self.folder, clock=self.clock)
        )
        self._opened.append(provider)
        return provider

    def request(
        self, token: str, fleet_id: str = "f-ours", options: SshOptions | None = None
    ) -> LaunchRequest:
        return launch_request(token, fleet_id, options or self.options())

    async def leave_half_born(self, request: LaunchRequest) -> None:
        # The host is taken, and nobody keeps it yet.
        provider = await self.open(request.fleet_id)
        host = hosts_of(self.options())[0]
        claim, _ = await provider._claim(host, request)
        assert claim is not None
        label = encode(claim.machine).decode()
        await provider._run(host, take_script(host, label))

    async def make_foreign(self) -> MachineId:
        # Somebody else's server uses the last host, with an account and a key like ours.
        other = SshLab(self.hosts, self.folder / "elsewhere")
        provider = await other.open("f-nobody")
        options = self.options(hosts=self.addresses()[-1:])
        machine = await provider.launch(self.request("x", "f-nobody", options))
        await provider.close()
        return machine.machine_id

    async def is_running(self, machine_id: MachineId) -> bool:
        return any(
            f'"machine_id":"{machine_id}"' in path.read_text()
            for host in self.hosts.hosts
            if (path := host.home / ".hostler/machine.json").exists()
        )

    def provocations(self) -> Mapping[type[ProviderFailed], Provocation]:
        return {
            RequestInvalid: Provocation(lambda: self._launch(key="/no/such/key")),
            CapacityUnavailable: Provocation(self._launch_on_nothing),
            CredentialsRejected: Provocation(
                lambda: self._launch(key=str(self.hosts.stranger_key))
            ),
            OutcomeUnknown: Provocation(self._lose_the_answer, has_effect=True),
        }

    async def _launch(self, **changed: Any) -> None:
        provider = await self.open()
        await provider.launch(self.request("n-9/launch/1", options=self.options(**changed)))

    async def _launch_on_nothing(self) -> None:
        (nothing,) = self.addresses()[:1]
        await self._launch(hosts=[msgspec.structs.replace(nothing, port=free_port())])

    async def _lose_the_answer(self) -> None:
        # What the host runs as a login shell breaks the connection once the host is taken.
        host = self.hosts.hosts[0]
        trap = host.home / ".hostler/machine.json"

        class Cutting(SshProvider):
            async def _run(self, *told: Any) -> tuple[int, str]:
                found = await super()._run(*told)
                if trap.exists():
                    host.cut_connections()
                return found

        context = await self.open()
        provider = Cutting(
            ProviderContext(fleet_id="f-ours", folder=self.folder, clock=context._clock)
        )
        self._opened.append(provider)
        await provider.launch(self.request("n-9/launch/1"))

    def never_fails_with(self) -> Mapping[type[ProviderFailed], str]:
        return {
            Throttled: "hosts do not count our calls",
            QuotaExceeded: "there are as many as there are hosts, which is capacity",
        }

    async def clean_up(self) -> None:
        for provider in self._opened:
            await provider.close()
        self.hosts.clean()
