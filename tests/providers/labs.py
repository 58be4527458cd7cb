"""The places where our providers are tried."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec

from hostler.base.encoding import encode
from hostler.base.ids import MachineId, NodeId
from hostler.engine.clock import SystemClock
from hostler.model.pool import Offer
from hostler.model.shape import Shape
from hostler.ports.provider import (
    CapacityUnavailable,
    CredentialsRejected,
    LaunchRequest,
    Machine,
    OutcomeUnknown,
    Provider,
    ProviderContext,
    ProviderFailed,
    QuotaExceeded,
    RequestInvalid,
    Secret,
    Throttled,
)
from hostler.providers.fake.provider import Failure
from hostler.providers.fake.provider import FakeOptions as FakeFilesOptions
from hostler.providers.fake.provider import FakeProvider as FakeFilesProvider
from hostler.providers.local.processes import pids_by_machine, pids_of
from hostler.providers.local.provider import AgentArgv, LocalOptions, LocalProvider
from hostler.providers.local.tags import MACHINE_MARK, machine_id_of, make_home
from hostler.testing.fake_provider import FakeCloud, FakeOptions, FakeProvider
from hostler.testing.provider_conformance import Provocation


def launch_request(token: str, fleet_id: str, options: msgspec.Struct) -> LaunchRequest:
    return LaunchRequest(
        token=token,
        fleet_id=fleet_id,
        node_id=NodeId(token.partition("/")[0]),
        epoch=1,
        pool="p",
        tier="cloud",
        offer=Offer(name="small", shape=Shape(capacity=4)),
        options=options,
        server_url="http://127.0.0.1:1",
        join_token=Secret("secret"),
        silence_ms_max=60_000,
    )


class FakeLab:
    def __init__(self, *, stop_ms: int = 0) -> None:
        self.clock = SystemClock()
        self.cloud = FakeCloud(stop_ms=stop_ms)

    async def open(self, fleet_id: str = "f-ours") -> Provider:
        return FakeProvider(fleet_id, self.clock, self.cloud)

    def request(self, token: str, fleet_id: str = "f-ours") -> LaunchRequest:
        # Tokens are per account; two fleets in one account have different ones.
        return launch_request(f"{token}@{fleet_id}", fleet_id, FakeOptions())

    async def leave_half_born(self, request: LaunchRequest) -> None:
        self.cloud.fail_next("launch", OutcomeUnknown("lost"), is_done=True)
        await asyncio.gather((await self.open()).launch(request), return_exceptions=True)

    async def make_foreign(self) -> MachineId:
        return self.cloud.launch(self.request("x", ""), self.clock.now_ms()).machine_id

    async def is_running(self, machine_id: MachineId) -> bool:
        return self.cloud.get(machine_id, self.clock.now_ms()) is not None

    def provocations(self) -> Mapping[type[ProviderFailed], Provocation]:
        errors = (
            RequestInvalid("no"),
            CapacityUnavailable("no", scope="zone a"),
            QuotaExceeded("no", scope="region"),
            CredentialsRejected("no"),
            Throttled("no", retry_after_ms=100),
        )
        found: dict[type[ProviderFailed], Provocation] = {
            type(error): Provocation(partial(self._fail, error)) for error in errors
        }
        lost = Provocation(
            partial(self._fail, OutcomeUnknown("lost"), is_done=True), has_effect=True
        )
        return {**found, OutcomeUnknown: lost}

    async def _fail(self, error: ProviderFailed, *, is_done: bool = False) -> None:
        self.cloud.fail_next("launch", error, is_done=is_done)
        await (await self.open()).launch(self.request("n-9/launch/1"))

    def never_fails_with(self) -> Mapping[type[ProviderFailed], str]:
        return {}


class FakeFilesLab:
    """The installed fake provider: its platform is a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = SystemClock()

    async def open(self, fleet_id: str = "f-ours") -> FakeFilesProvider:
        return FakeFilesProvider(
            ProviderContext(fleet_id=fleet_id, folder=self.folder, clock=self.clock)
        )

    def request(self, token: str, fleet_id: str = "f-ours") -> LaunchRequest:
        return launch_request(token, fleet_id, FakeFilesOptions())

    async def leave_half_born(self, request: LaunchRequest) -> None:
        options = FakeFilesOptions(fail_every=1, failure="outcome_unknown")
        call = (await self.open()).launch(msgspec.structs.replace(request, options=options))
        await asyncio.gather(call, return_exceptions=True)

    async def make_foreign(self) -> MachineId:
        machine = await (await self.open("f-nobody")).launch(self.request("x", "f-nobody"))
        return machine.machine_id

    async def is_running(self, machine_id: MachineId) -> bool:
        return (self.folder / "machines" / f"{machine_id}.json").exists()

    def provocations(self) -> Mapping[type[ProviderFailed], Provocation]:
        codes: dict[type[ProviderFailed], Failure] = {
            RequestInvalid: "request_invalid",
            CapacityUnavailable: "capacity_unavailable",
            QuotaExceeded: "quota_exceeded",
            CredentialsRejected: "credentials_rejected",
            Throttled: "throttled",
            OutcomeUnknown: "outcome_unknown",
        }
        return {
            kind: Provocation(partial(self._fail, code), has_effect=kind is OutcomeUnknown)
            for kind, code in codes.items()
        }

    async def _fail(self, code: Failure) -> None:
        options = FakeFilesOptions(fail_every=1, failure=code)
        await (await self.open()).launch(launch_request("n-9/launch/1", "f-ours", options))

    def never_fails_with(self) -> Mapping[type[ProviderFailed], str]:
        return {}


def an_idle_agent(_options_path: str) -> list[str]:
    return ["sleep", "600"]


def a_stranger() -> subprocess.Popen[bytes]:
    environment = {**os.environ, MACHINE_MARK: "foreign"}
    return subprocess.Popen(["sleep", "600"], env=environment, start_new_session=True)


class LocalLab:
    """Real processes; instead of an agent each machine runs something that starts at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = SystemClock()
        self._foreign: list[subprocess.Popen[bytes]] = []

    def context(self, fleet_id: str = "f-ours") -> ProviderContext:
        return ProviderContext(fleet_id=fleet_id, folder=self.folder, clock=self.clock)

    async def open(self, fleet_id: str = "f-ours") -> LocalProvider:
        return LocalProvider(self.context(fleet_id), an_idle_agent)

    def request(self, token: str, fleet_id: str = "f-ours") -> LaunchRequest:
        return launch_request(token, fleet_id, LocalOptions())

    async def leave_half_born(self, request: LaunchRequest) -> None:
        machines = self.folder / "machines"
        now_ms = self.clock.now_ms()
        label = Machine(
            machine_id=machine_id_of(machines, request.fleet_id, request.token),
            fleet_id=request.fleet_id,
            node_id=request.node_id,
            epoch=request.epoch,
            token=request.token,
            pool=request.pool,
            tier=request.tier,
            created_at_ms=now_ms,
            expires_at_ms=now_ms + request.silence_ms_max,
        )
        make_home(machines, label, encode({}))

    async def make_foreign(self) -> MachineId:
        process = a_stranger()
        self._foreign.append(process)
        return MachineId("foreign")

    async def is_running(self, machine_id: MachineId) -> bool:
        return bool(pids_of(machine_id))

    def provocations(self) -> Mapping[type[ProviderFailed], Provocation]:
        return {
            RequestInvalid: Provocation(self._without_agent),
            CapacityUnavailable: Provocation(self._without_room),
            QuotaExceeded: Provocation(self._beyond_the_limit),
            CredentialsRejected: Provocation(self._without_permission),
        }

    async def _launch_with(self, agent_argv: AgentArgv) -> None:
        await LocalProvider(self.context(), agent_argv).launch(self.request("n-9/launch/1"))

    async def _without_agent(self) -> None:
        await self._launch_with(lambda _: ["/no/such/agent"])

    async def _without_room(self) -> None:
        def fails(_: str) -> list[str]:
            raise OSError(errno.EAGAIN, "as when the table of processes is full")

        await self._launch_with(fails)

    async def _without_permission(self) -> None:
        # Not even root runs a file that nobody may.
        agent = self.folder / "agent"
        agent.parent.mkdir(exist_ok=True)
        agent.touch(mode=0o600)
        await self._launch_with(lambda _: [str(agent)])

    async def _beyond_the_limit(self) -> None:
        request = launch_request("n-9/launch/1", "f-ours", LocalOptions(machines_max=0))
        await (await self.open()).launch(request)

    def never_fails_with(self) -> Mapping[type[ProviderFailed], str]:
        return {
            Throttled: "nobody counts our calls",
            OutcomeUnknown: "the folder tells what happened",
        }

    def clean_up(self) -> None:
        for process in self._foreign:
            process.kill()
            process.wait()
        ours = {path.name for path in (self.folder / "machines").glob("*")}
        for machine_id, pids in pids_by_machine().items():
            if machine_id in ours:
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
