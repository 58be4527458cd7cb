"""The provider `fake`: a machine is a file, and its tier's options say what happens to it."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec

from hostler.base.encoding import decode, encode
from hostler.base.errors import Rejected
from hostler.base.ids import MachineId
from hostler.base.units import duration_ms
from hostler.model.pool import Offer
from hostler.ports.commands import Execution, MachineCommand, MachineFound
from hostler.ports.provider import (
    CapacityUnavailable,
    CredentialsRejected,
    LaunchRequest,
    Machine,
    OutcomeUnknown,
    ProviderContext,
    ProviderFailed,
    ProviderKind,
    QuotaExceeded,
    RequestInvalid,
    Throttled,
)
from hostler.providers.fake.execution import FakeExecution

Failure = Literal[
    "request_invalid",
    "capacity_unavailable",
    "quota_exceeded",
    "credentials_rejected",
    "throttled",
    "outcome_unknown",
]

RETRY_AFTER_MS: Final = 1_000
"""What a throttled launch asks for."""


class FakeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tier's `options` for this provider."""

    launch: str = "0s"
    """How long a launch takes."""
    boot: str = "0s"
    """How long a machine cannot run commands after its launch."""
    log: str = ""
    """What a machine writes as it boots; it is kept when that fails."""
    stop: str = "0s"
    """How long a machine goes on costing money after it was told to stop."""
    machines_max: int | None = None
    """Machines at once, over all tiers with this option; the next launch exceeds the quota."""
    fail_every: int | None = None
    """Every so-manyth launch fails; 1 is each of them."""
    failure: Failure = "capacity_unavailable"
    """How it fails. With `outcome_unknown` the machine is there all the same."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A machine's file."""

    machine: Machine
    ready_at_ms: int
    stop_ms: int
    log: str = ""
    gone_at_ms: int | None = None


class FakeProvider:
    """Machines that do not exist, of one fleet and one data folder."""

    def __init__(self, context: ProviderContext) -> None:
        self._fleet_id = context.fleet_id
        self._clock = context.clock
        self._machines = context.folder / "machines"
        self._count = context.folder / "launches"
        self._running: dict[MachineId, list[FakeExecution]] = {}

    # -- the port ----------------------------------------------------------------------------

    async def launch(self, request: LaunchRequest) -> Machine:
        """Write a machine's file, in the time that the options say; see `Provider.launch`."""
        options = request.options
        if request.fleet_id != self._fleet_id or not isinstance(options, FakeOptions):
            raise RequestInvalid("the request is not for this provider", token=request.token)
        machine_id = self._machine_id(request.token)
        known = self._read(machine_id)
        if known is not None:
            return known.machine
        await asyncio.sleep(_ms(options.launch) / 1_000)
        failure = self._failure(options)
        if failure is not None and not isinstance(failure, OutcomeUnknown):
            raise failure
        if options.machines_max is not None and len(self._all()) >= options.machines_max:
            raise QuotaExceeded(
                "there are as many fake machines as the tier's options allow",
                scope="fake",
                machines_max=options.machines_max,
            )
        machine = self._make(machine_id, request, options)
        if failure is not None:
            raise failure
        return machine

    async def get(self, machine_id: MachineId) -> Machine | None:
        """Return a machine that has not gone; see `Provider.get`."""
        kept = self._read(machine_id)
        return None if kept is None else kept.machine

    async def list_owned(self) -> AsyncIterator[Machine]:
        """Yield what has not gone; see `Provider.list_owned`."""
        for kept in self._all():
            yield kept.machine

    async def stop(self, machine_id: MachineId) -> None:
        """Let a machine go, in the time that the options say; see `Provider.stop`."""
        kept = self._read(machine_id)
        if kept is None or kept.gone_at_ms is not None:
            return
        gone_at_ms = self._clock.now_ms() + kept.stop_ms
        self._write(msgspec.structs.replace(kept, gone_at_ms=gone_at_ms))

    async def boot_log(self, machine_id: MachineId, bytes_max: int) -> str:
        """Return what the options have it write; see `TellsBootLog`."""
        kept = self._read(machine_id)
        return "" if kept is None else kept.log[-bytes_max:]

    async def offers(self) -> Sequence[Offer]:
        """Return nothing: every name is good."""
        return ()

    async def close(self) -> None:
        """Nothing to let go of."""

    # -- commands ----------------------------------------------------------------------------

    async def probe(self, machine_id: MachineId) -> MachineFound:
        """Answer for a machine that has booted; see `CommandProvider.probe`."""
        kept = self._read(machine_id)
        if kept is None:
            raise CapacityUnavailable("there is no such machine", machine_id=machine_id)
        if self._clock.now_ms() < kept.ready_at_ms:
            raise CapacityUnavailable("the machine has not booted yet", machine_id=machine_id)
        return MachineFound(work_folder="/fake")

    async def exec(self, machine_id: MachineId, command: MachineCommand) -> Execution:
        """Seem to run a command; see `CommandProvider.exec`."""
        await self.probe(machine_id)
        execution = FakeExecution(command)
        running = self._running.get(machine_id, ())
        self._running[machine_id] = [one for one in running if not one.is_over] + [execution]
        return execution

    async def clear(self, machine_id: MachineId, folder: str) -> None:
        """End what seems to run under a folder; see `CommandProvider.clear`."""
        for one in self._running.get(machine_id, ()):
            if f"{one.folder}/".startswith(f"{folder}/"):
                await one.signal("SIGKILL")

    # -- files -------------------------------------------------------------------------------

    def _machine_id(self, token: str) -> MachineId:
        told = f"{self._fleet_id}\x00{token}".encode()
        return MachineId(f"fake-{hashlib.blake2b(told, digest_size=8).hexdigest()}")

    def _failure(self, options: FakeOptions) -> ProviderFailed | None:
        """Count a launch, and return the failure that it meets."""
        if options.fail_every is None:
            return None
        self._count.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._count.open("a+b") as file:
            file.write(b".")
            count = file.tell()
        return None if count % max(1, options.fail_every) else _failures()[options.failure]

    def _make(self, machine_id: MachineId, request: LaunchRequest, options: FakeOptions) -> Machine:
        now_ms = self._clock.now_ms()
        machine = Machine(
            machine_id=machine_id,
            fleet_id=self._fleet_id,
            node_id=request.node_id,
            epoch=request.epoch,
            token=request.token,
            pool=request.pool,
            tier=request.tier,
            created_at_ms=now_ms,
            expires_at_ms=now_ms + request.silence_ms_max,
            hostname=machine_id,
        )
        kept = _Kept(
            machine=machine,
            ready_at_ms=now_ms + _ms(options.boot),
            stop_ms=_ms(options.stop),
            log=options.log,
        )
        self._machines.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._machines / f"{machine_id}.{os.getpid()}-{id(self)}"
        draft.write_bytes(encode(kept))
        with suppress(FileExistsError):  # another call with the same token was quicker
            os.link(draft, self._machines / f"{machine_id}.json")
        draft.unlink()
        there = self._read(machine_id)
        return machine if there is None else there.machine

    def _write(self, kept: _Kept) -> None:
        draft = self._machines / f"{kept.machine.machine_id}.new"
        draft.write_bytes(encode(kept))
        draft.replace(self._machines / f"{kept.machine.machine_id}.json")

    def _read(self, machine_id: str) -> _Kept | None:
        """Read a machine's file; one that has gone by now is removed."""
        file = self._machines / f"{machine_id.replace('/', '_')}.json"
        kept = _decoded(file)
        if kept is None or kept.machine.fleet_id != self._fleet_id:
            return None
        if kept.gone_at_ms is not None and kept.gone_at_ms <= self._clock.now_ms():
            file.unlink(missing_ok=True)
            self._running.pop(MachineId(machine_id), None)
            return None
        return kept

    def _all(self) -> list[_Kept]:
        found = [self._read(file.stem) for file in sorted(self._machines.glob("fake-*.json"))]
        return [kept for kept in found if kept is not None]


def _decoded(file: Path) -> _Kept | None:
    try:
        return decode(file.read_bytes(), _Kept)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _failures() -> dict[Failure, ProviderFailed]:
    return {
        "request_invalid": RequestInvalid("the options say so"),
        "capacity_unavailable": CapacityUnavailable("the options say so", scope="fake"),
        "quota_exceeded": QuotaExceeded("the options say so", scope="fake"),
        "credentials_rejected": CredentialsRejected("the options say so"),
        "throttled": Throttled("the options say so", retry_after_ms=RETRY_AFTER_MS),
        "outcome_unknown": OutcomeUnknown("the options say so"),
    }


def _ms(text: str) -> int:
    try:
        return duration_ms(text)
    except Rejected as error:
        raise RequestInvalid("an option is no duration", value=text) from error


def _problems(options: msgspec.Struct) -> Sequence[str]:
    """Say which options are no durations."""
    found = []
    for name in ("launch", "boot", "stop"):
        try:
            duration_ms(getattr(options, name))
        except Rejected as error:
            found.append(f"{name}: {error}")
    return found


PROVIDER: Final = ProviderKind(
    name="fake",
    api_version=1,
    options_type=FakeOptions,
    open=FakeProvider,
    has_agents=False,
    problems=_problems,
)
"""What the entry point leads to."""
