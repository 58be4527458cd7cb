"""The provider: what Hostler asks, in the words of folders."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from hostler.base.ids import MachineId
from hostler.model.pool import Offer
from hostler.ports.commands import Execution, MachineCommand, MachineFound
from hostler.ports.posix import SHELL, clear_script
from hostler.ports.provider import (
    CapacityUnavailable,
    LaunchRequest,
    Machine,
    OutcomeUnknown,
    ProviderContext,
    ProviderKind,
    QuotaExceeded,
    RequestInvalid,
    SelfCheck,
)
from hostler_sample.execution import Process


class SampleOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tier's `options`. Unknown fields are forbidden, so that every typing error is told."""

    folders_max: int = 10


class SampleProvider:
    """Folders of one fleet."""

    def __init__(self, context: ProviderContext) -> None:
        self._fleet_id = context.fleet_id
        self._clock = context.clock
        self._folder = context.folder.absolute() / "machines"

    async def launch(self, request: LaunchRequest) -> Machine:
        """Make a folder. Its name follows from the token, its label is in it from the start."""
        if request.fleet_id != self._fleet_id or not isinstance(request.options, SampleOptions):
            raise RequestInvalid("the request is not for this provider")
        told = f"{self._fleet_id}\x00{request.token}".encode()
        machine_id = MachineId(f"sample-{hashlib.blake2b(told, digest_size=8).hexdigest()}")
        known = self._label(machine_id)
        if known is not None:
            return known
        if len(list(self._folder.glob("sample-*"))) >= request.options.folders_max:
            raise QuotaExceeded("there are as many folders as there may be", scope="host")
        now_ms = self._clock.now_ms()
        label = Machine(
            machine_id=machine_id,
            fleet_id=self._fleet_id,
            node_id=request.node_id,
            epoch=request.epoch,
            token=request.token,
            pool=request.pool,
            tier=request.tier,
            created_at_ms=now_ms,
            expires_at_ms=now_ms + request.silence_ms_max,
        )
        draft = self._folder / f"birth-{os.getpid()}-{id(request)}-{machine_id}"
        draft.mkdir(parents=True)
        (draft / "label.json").write_bytes(msgspec.json.encode(label))
        try:
            draft.rename(self._folder / machine_id)  # whole, or not at all
        except OSError:  # another call with the same token was quicker
            shutil.rmtree(draft)
        return self._label(machine_id) or label

    async def get(self, machine_id: MachineId) -> Machine | None:
        """Return a machine while its folder is there."""
        return self._label(machine_id)

    async def list_owned(self) -> AsyncIterator[Machine]:
        """Yield every folder of our fleet."""
        for path in sorted(self._folder.glob("sample-*")):
            machine = self._label(path.name)
            if machine is not None:
                yield machine

    async def stop(self, machine_id: MachineId) -> None:
        """End what runs in a folder, and remove it. What is not ours is left alone."""
        if self._label(machine_id) is not None:
            await self.clear(machine_id, str(self._folder / machine_id / "leases"))
            shutil.rmtree(self._folder / machine_id, ignore_errors=True)

    async def offers(self) -> Sequence[Offer]:
        """Return nothing: every name is good."""
        return ()

    async def close(self) -> None:
        """Nothing to let go of."""

    # -- commands: only for machines that run no agent of Hostler ----------------------------

    async def probe(self, machine_id: MachineId) -> MachineFound:
        """Say that commands can run, and where."""
        if self._label(machine_id) is None:
            raise CapacityUnavailable("there is no such folder", machine_id=machine_id)
        return MachineFound(work_folder=str(self._folder / machine_id))

    async def exec(self, machine_id: MachineId, command: MachineCommand) -> Execution:
        """Run a command."""
        await self.probe(machine_id)
        return await Process.start(command)

    async def clear(self, machine_id: MachineId, folder: str) -> None:  # noqa: ARG002 - paths are whole
        """End what runs under a folder, and remove it."""
        argv = [SHELL, "-c", clear_script(folder)]
        # In a thread: a call that is given up half way does not give the cleaning up.
        done = await asyncio.to_thread(subprocess.run, argv, check=False)
        if done.returncode:
            raise OutcomeUnknown("the folder was not cleared", folder=folder)

    def _label(self, machine_id: str) -> Machine | None:
        path: Path = self._folder / machine_id.replace("/", "_") / "label.json"
        with suppress(OSError, msgspec.MsgspecError):
            label = msgspec.json.decode(path.read_bytes(), type=Machine)
            return label if label.fleet_id == self._fleet_id else None
        return None


async def check(context: ProviderContext, options: msgspec.Struct) -> Sequence[SelfCheck]:  # noqa: ARG001 - as the port says
    """Say whether there is a shell; for `hostler providers check`."""
    is_there = os.access(SHELL, os.X_OK)
    return [SelfCheck(subject=SHELL, is_good=is_there, detail="there" if is_there else "not there")]


PROVIDER = ProviderKind(
    name="sample",
    api_version=1,  # what PROVIDER_API_VERSION was when this was written
    options_type=SampleOptions,
    open=SampleProvider,
    has_agents=False,
    check=check,
)
"""What the entry point leads to."""
