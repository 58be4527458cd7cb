"""The provider `ssh`: a machine is the use of one host, from its taking to its cleaning.

Which host a launch gets is chosen here, in the order of the options but for hosts that lately
failed: they come last. That a host has one machine at a time is seen to by the host itself, so two
tiers, two fleets and two servers can name it. See `hostler.providers.ssh.scripts`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec

from hostler.base.encoding import decode, encode
from hostler.base.ids import MachineId
from hostler.model.pool import Offer
from hostler.ports.commands import Execution, MachineCommand, MachineFound
from hostler.ports.posix import CLEARED_NOT, clear_script, command_script
from hostler.ports.provider import (
    CapacityUnavailable,
    CredentialsRejected,
    LaunchRequest,
    Machine,
    OutcomeUnknown,
    ProviderContext,
    ProviderFailed,
    ProviderKind,
    RequestInvalid,
)
from hostler.providers.ssh.checks import self_check
from hostler.providers.ssh.connections import HostConnections
from hostler.providers.ssh.execution import SshExecution, run_script
from hostler.providers.ssh.memory import Claim, Memory
from hostler.providers.ssh.options import Host, SshOptions, hosts_of, problems_of
from hostler.providers.ssh.scripts import (
    NOT_OURS,
    QUARANTINED,
    TAKEN,
    free_script,
    keep_script,
    look_script,
    probe_script,
    take_script,
)

COOLING_MS: Final = 30_000
"""How long a host that failed goes behind the others: a reboot is over by then, and the order of
the options is what the operator wants as soon as it can be had."""


class SshProvider:
    """Hosts used by one fleet."""

    def __init__(self, context: ProviderContext) -> None:
        self._fleet_id = context.fleet_id
        self._clock = context.clock
        self._memory = Memory(context.folder, context.fleet_id)
        self._connections: dict[Host, HostConnections] = {}
        self._failed_at_ms: dict[str, int] = {}
        self._starts: dict[int, asyncio.Semaphore] = {}

    # -- the port ----------------------------------------------------------------------------

    async def launch(self, request: LaunchRequest) -> Machine:
        """Take the first host that can be had; see `Provider.launch`."""
        options = request.options
        if request.fleet_id != self._fleet_id or not isinstance(options, SshOptions):
            raise RequestInvalid("the request is not for this provider", token=request.token)
        starts = self._starts.setdefault(options.starts_max, asyncio.Semaphore(options.starts_max))
        async with starts:
            refusals: dict[str, str] = {}
            rejected: list[CredentialsRejected | RequestInvalid] = []
            for host in self._in_order(hosts_of(options)):
                claim, is_new = await self._claim(host, request)
                if claim is None:
                    refusals[host.name] = "is a machine of ours already"
                    continue
                try:
                    return await self._take(claim, request.silence_ms_max)
                except _Refused as refusal:
                    refusals[host.name] = str(refusal)
                except (CapacityUnavailable, CredentialsRejected, RequestInvalid) as failure:
                    if not is_new:
                        raise OutcomeUnknown(
                            "an earlier call may have taken the host, which does not answer now",
                            host=claim.host.name,
                        ) from failure
                    # Nothing was done there: the next host may do.
                    self._memory.drop(claim)
                    self._failed_at_ms[host.name] = self._clock.now_ms()
                    refusals[host.name] = failure.message
                    if not isinstance(failure, CapacityUnavailable):
                        rejected.append(failure)
        if rejected and len(rejected) == len(refusals):
            raise rejected[0]
        raise CapacityUnavailable(
            "no host can be had", scope="hosts", hosts="; ".join(_pairs(refusals))
        )

    async def get(self, machine_id: MachineId) -> Machine | None:
        """Return a machine while its host is not free again; see `Provider.get`."""
        claim = self._memory.by_machine(machine_id)
        if claim is None:
            return None
        label = await self._label(claim.host)
        if label is not None and label.machine_id == machine_id:
            return label
        self._memory.drop(claim)
        return None

    async def list_owned(self) -> AsyncIterator[Machine]:
        """Yield our machines, those on hosts that do not answer too; see `Provider.list_owned`."""
        claims = list(self._memory.claims())

        async def look(claim: Claim) -> Machine | None:
            try:
                return await self.get(claim.machine.machine_id)
            except ProviderFailed:
                return claim.machine  # it may be there, so it is

        for machine in await asyncio.gather(*[look(claim) for claim in claims]):
            if machine is not None:
                yield machine

    async def stop(self, machine_id: MachineId) -> None:
        """End what runs, clean the host and free it; see `Provider.stop`."""
        claim = self._memory.by_machine(machine_id)
        if claim is None:
            return
        code, told = await self._run(claim.host, free_script(claim.host, machine_id))
        if code in (0, NOT_OURS):
            self._memory.drop(claim)
        elif code != CLEARED_NOT:
            raise CapacityUnavailable(
                "the host cannot be freed",
                scope="host",
                host=claim.host.name,
                why=told,
                exit_code=code,
            )

    async def offers(self) -> Sequence[Offer]:
        """Return nothing: a tier declares what its hosts have."""
        return ()

    async def close(self) -> None:
        """End the connections; machines stay."""
        connections, self._connections = self._connections, {}
        await asyncio.gather(*[one.close() for one in connections.values()])

    # -- commands ----------------------------------------------------------------------------

    async def probe(self, machine_id: MachineId) -> MachineFound:
        """See that commands run, and tell the keeper that we live; see `CommandProvider.probe`."""
        host = self._host(machine_id)
        code, told = await self._run(host, probe_script(host, machine_id))
        lines = told.splitlines()
        if code or lines[1:] != ["ready"]:
            raise CapacityUnavailable(
                "the host does not answer as it should",
                scope="host",
                host=host.name,
                exit_code=code,
                told=told[:200],
            )
        return MachineFound(work_folder=lines[0])

    async def exec(self, machine_id: MachineId, command: MachineCommand) -> Execution:
        """Run a command over a connection to the host; see `CommandProvider.exec`."""
        host = self._host(machine_id)
        label = await self._label(host)
        if label is None or label.machine_id != machine_id:
            raise CapacityUnavailable("there is no such machine", machine_id=machine_id)
        return await SshExecution.start(self._to(host), command_script(command), command)

    async def clear(self, machine_id: MachineId, folder: str) -> None:
        """Kill and remove what is under a folder; see `CommandProvider.clear`."""
        host = self._host(machine_id)
        code, _ = await self._run(host, clear_script(folder))
        if code:
            raise OutcomeUnknown(
                "the folder was not cleared", host=host.name, folder=folder, exit_code=code
            )

    # -- taking a host -----------------------------------------------------------------------

    def _in_order(self, hosts: Sequence[Host]) -> list[Host]:
        """Return hosts as they are to be tried: those that lately failed come last (G-72)."""
        now_ms = self._clock.now_ms()

        def is_cooling(host: Host) -> bool:
            failed_at_ms = self._failed_at_ms.get(host.name)
            return failed_at_ms is not None and now_ms - failed_at_ms < COOLING_MS

        return sorted(hosts, key=is_cooling)

    async def _claim(self, host: Host, request: LaunchRequest) -> tuple[Claim | None, bool]:
        """Note that a host is to be asked, and say whether that is new.

        `None`: it is used by another launch. Where the same launch has begun already, its claim is
        returned, whatever host it is on.
        """
        async with self._memory.locked():
            begun = self._memory.by_token(request.token)
            if begun is not None:
                return begun, False
            claim = Claim(host=host, machine=self._machine(host, request))
            return (claim if self._memory.add(claim) else None), True

    def _machine(self, host: Host, request: LaunchRequest) -> Machine:
        now_ms = self._clock.now_ms()
        told = f"{self._fleet_id}\x00{request.token}".encode()
        mark = hashlib.blake2b(told, digest_size=8).hexdigest()
        return Machine(
            machine_id=MachineId(f"{host.mark}-{mark}"),
            fleet_id=self._fleet_id,
            node_id=request.node_id,
            epoch=request.epoch,
            token=request.token,
            pool=request.pool,
            tier=request.tier,
            created_at_ms=now_ms,
            expires_at_ms=now_ms + request.silence_ms_max,
            hostname=host.address.host,
        )

    async def _take(self, claim: Claim, silence_ms: int) -> Machine:
        """Take a host that is claimed, or find that it is taken for this launch already.

        Raises:
            _Refused: Somebody else has it, or it is in quarantine; the claim is dropped.
            ProviderFailed: As `launch`; only after `OutcomeUnknown` may anything be there.
        """
        host, machine = claim.host, claim.machine
        label = encode(machine).decode()
        code, told = await self._run(host, take_script(host, label))
        if code == TAKEN:
            holder = _read_label(told)
            if holder is None or holder.machine_id != machine.machine_id:
                self._memory.drop(claim)
                raise _Refused("is taken by somebody else")
        elif code == QUARANTINED:
            self._memory.drop(claim)
            raise _Refused(f"is in quarantine: {told.strip()}")
        elif code:
            self._memory.drop(claim)
            raise CapacityUnavailable(
                "the host cannot be used", scope="host", host=host.name, exit_code=code, why=told
            )
        code, told = await self._run(host, keep_script(host, machine.machine_id, silence_ms))
        if code:
            raise OutcomeUnknown(
                "the host was freed as it was taken", host=host.name, exit_code=code, why=told
            )
        return machine

    async def _label(self, host: Host) -> Machine | None:
        """Return the label of the machine that has a host, if it is this fleet's."""
        code, told = await self._run(host, look_script(host))
        if code:
            raise OutcomeUnknown(
                "the host does not show who has it", host=host.name, exit_code=code
            )
        label = _read_label(told)
        return None if label is None or label.fleet_id != self._fleet_id else label

    # -- connections -------------------------------------------------------------------------

    def _to(self, host: Host) -> HostConnections:
        found = self._connections.get(host)
        if found is None:
            found = self._connections[host] = HostConnections(host)
        return found

    async def _run(self, host: Host, script: str) -> tuple[int, str]:
        return await run_script(self._to(host), script)

    def _host(self, machine_id: str) -> Host:
        claim = self._memory.by_machine(machine_id)
        if claim is None:
            raise CapacityUnavailable("there is no such machine", machine_id=machine_id)
        return claim.host


class _Refused(Exception):
    """A host that is not to be had, and why."""


def _pairs(refusals: dict[str, str]) -> list[str]:
    return [f"{name} {why}" for name, why in refusals.items()]


def _read_label(told: str) -> Machine | None:
    try:
        return decode(told.encode(), Machine)
    except msgspec.MsgspecError:
        return None


PROVIDER: Final = ProviderKind(
    name="ssh",
    api_version=1,
    options_type=SshOptions,
    open=SshProvider,
    has_agents=False,
    check=self_check,
    problems=problems_of,
)
"""What the entry point leads to."""
