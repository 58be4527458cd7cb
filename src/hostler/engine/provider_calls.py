"""Commands to providers: the request is put together here, and the answer becomes facts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import assert_never

from hostler.base.ids import CommandId, MachineId, NodeId
from hostler.core.fleet import Fleet
from hostler.core.inputs import CommandFailed, Outcome, Succeeded
from hostler.core.machine_fact import MachineFact
from hostler.engine import limits
from hostler.engine.keys import Keys
from hostler.model.command import (
    CheckMachine,
    LaunchMachine,
    ListMachines,
    ProviderCommand,
    StopMachine,
)
from hostler.ports.commands import CommandProvider
from hostler.ports.provider import (
    LaunchRequest,
    Machine,
    Provider,
    ProviderFailed,
    RequestInvalid,
    Secret,
    TellsBootLog,
    TellsEnds,
)
from hostler.providers.registry import Registry, read_options

STILL_STOPPING_MS = 500
"""When to ask again about a machine that was told to stop and is not gone."""


class ProviderCalls:
    """Makes calls out of commands."""

    def __init__(self, registry: Registry, keys: Keys, server_url: str) -> None:
        self._registry = registry
        self._keys = keys
        self._server_url = server_url

    def attempt(
        self, fleet: Fleet, command_id: CommandId, command: ProviderCommand
    ) -> Callable[[], Awaitable[Outcome]]:
        """Return what makes one attempt; everything that it needs of the fleet is read now."""
        fleet_id = "" if fleet.settings is None else fleet.settings.fleet_id
        make_request = None
        if isinstance(command, LaunchMachine):
            make_request = self._prepare(fleet_id, command_id, command)

        async def attempt() -> Outcome:
            provider = self._registry.opened(command.provider, fleet_id)
            match command:
                case LaunchMachine():
                    if make_request is None:
                        raise RequestInvalid("the tier or the offer is no longer configured")
                    return _succeeded(await provider.launch(make_request()))
                case StopMachine():
                    return await _stop(provider, command)
                case CheckMachine():
                    found = await provider.get(command.machine_id)
                    if found is None:
                        log = await _log_if_wanted(provider, command)
                        return await _gone(provider, [command.machine_id], boot_log=log)
                    return _succeeded(found)
                case ListMachines():
                    return _succeeded(*[machine async for machine in provider.list_owned()])
                case _:
                    assert_never(command)

        return attempt

    def _prepare(
        self, fleet_id: str, command_id: CommandId, command: LaunchMachine
    ) -> Callable[[], LaunchRequest] | None:
        offer = command.made_of
        if offer is None:
            return None

        def make() -> LaunchRequest:
            kind = self._registry.kind(command.provider)
            return LaunchRequest(
                token=command_id,
                fleet_id=fleet_id,
                node_id=command.node_id,
                epoch=command.epoch,
                pool=command.pool,
                tier=command.tier,
                zone=command.zone,
                offer=offer,
                options=read_options(kind, command.options_json),
                server_url=self._server_url,
                join_token=Secret(self._keys.join_token(command.node_id, command.epoch)),
                silence_ms_max=limits.SILENCE_MS_MAX,
            )

        return make


async def _stop(provider: Provider, command: StopMachine) -> Outcome:
    """Stop a machine and say whether it is gone: by its id, or by its label if we have no id."""
    met: list[Machine] = []
    if command.machine_id is None:
        owned = provider.list_owned()
        met = [machine async for machine in owned if machine.node_id == command.node_id]
    known = [] if command.machine_id is None else [command.machine_id]
    listed = [machine.machine_id for machine in met]
    machine_ids = list(dict.fromkeys((*known, *command.met_machine_ids, *listed)))
    log = await _log_if_wanted(provider, command)
    is_gone = True
    for machine_id in machine_ids:
        await provider.stop(machine_id)
        is_gone = await provider.get(machine_id) is None and is_gone
    if is_gone:
        return await _gone(provider, machine_ids, boot_log=log)
    return CommandFailed(
        code="outcome_unknown",
        message="the machine is still stopping",
        retry_after_ms=STILL_STOPPING_MS,
        machines=tuple(_fact_of(machine) for machine in met),
        boot_log=log,
    )


async def _log_if_wanted(provider: Provider, command: StopMachine | CheckMachine) -> str:
    """Return what a machine wrote that did not boot, and why nothing runs on it; it may be empty.

    Nothing depends on it, so neither a failure nor a provider that hangs keeps a stop from being
    made.
    """
    if not command.is_boot_log_wanted or command.machine_id is None:
        return ""
    told: list[str] = []
    try:
        async with asyncio.timeout(limits.BOOT_LOG_S_MAX):
            if isinstance(provider, TellsBootLog):
                told.append(await provider.boot_log(command.machine_id, limits.BOOT_LOG_BYTES_MAX))
            if isinstance(provider, CommandProvider):
                await provider.probe(command.machine_id)
    except (ProviderFailed, TimeoutError) as error:
        told.append(f"{command.provider} says: {str(error) or 'nothing, for too long'}")
    return "\n".join(each for each in told if each)[-limits.BOOT_LOG_BYTES_MAX :]


async def _gone(
    provider: Provider, machine_ids: Sequence[MachineId], *, boot_log: str = ""
) -> Succeeded:
    """Say that machines are gone, and when the last of them ended if the provider can tell."""
    ends: list[int] = []
    if isinstance(provider, TellsEnds):
        found = [await provider.ended_at_ms(machine_id) for machine_id in machine_ids]
        ends = [each for each in found if each is not None]
    return Succeeded(ended_at_ms=max(ends, default=None), boot_log=boot_log)


def _succeeded(*machines: Machine) -> Succeeded:
    return Succeeded(machines=tuple(_fact_of(machine) for machine in machines))


def _fact_of(machine: Machine) -> MachineFact:
    return MachineFact(
        machine_id=machine.machine_id,
        node_id=NodeId(machine.node_id),
        epoch=machine.epoch,
        pool=machine.pool,
        tier=machine.tier,
        created_at_ms=machine.created_at_ms,
        started_at_ms=machine.started_at_ms,
        hostname=machine.hostname,
        notice=machine.notice,
        ends_at_ms=machine.ends_at_ms,
    )
