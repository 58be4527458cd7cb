"""The suite: tests by what the engine relies on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import pytest

from hostler.base.ids import MachineId
from hostler.ports.provider import (
    CapacityUnavailable,
    CredentialsRejected,
    Machine,
    OutcomeUnknown,
    Provider,
    ProviderFailed,
    QuotaExceeded,
    RequestInvalid,
    Throttled,
)
from hostler.testing.provider_conformance.lab import ProviderLab

CLOSED_SET: Final = (
    RequestInvalid,
    CapacityUnavailable,
    QuotaExceeded,
    CredentialsRejected,
    Throttled,
    OutcomeUnknown,
)
"""Every failure that there is."""

STOP_TRIES_MAX: Final = 600
"""Of asking whether a machine is gone, 100 ms apart: a minute, which is long for a test."""


async def listed(provider: Provider) -> list[Machine]:
    """Return everything that a provider lists, ordered by token."""
    return sorted([one async for one in provider.list_owned()], key=lambda one: one.token)


async def end(provider: Provider, machine_id: MachineId) -> None:
    """Stop a machine until it is gone."""
    for _ in range(STOP_TRIES_MAX):
        await provider.stop(machine_id)
        if await provider.get(machine_id) is None:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{machine_id} is not gone after {STOP_TRIES_MAX} tries")


@pytest.mark.anyio
class ProviderConformance:
    """The whole suite."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run the suite on asyncio, as the engine is."""
        return "asyncio"

    # -- birth -------------------------------------------------------------------------------

    async def test_a_machine_carries_its_label_from_birth(self, lab: ProviderLab) -> None:
        provider = await lab.open()
        request = lab.request("n-1/launch/1")
        machine = await provider.launch(request)
        assert (machine.fleet_id, machine.node_id, machine.epoch, machine.token) == (
            request.fleet_id,
            request.node_id,
            request.epoch,
            request.token,
        )
        assert (machine.pool, machine.tier) == (request.pool, request.tier)
        assert machine.expires_at_ms == machine.created_at_ms + request.silence_ms_max
        assert await lab.is_running(machine.machine_id)
        assert await provider.get(machine.machine_id) == machine
        assert await listed(provider) == [machine]

    async def test_the_same_token_is_the_same_machine(self, lab: ProviderLab) -> None:
        provider = await lab.open()
        first = await provider.launch(lab.request("n-1/launch/1"))
        again = await provider.launch(lab.request("n-1/launch/1"))
        other = await provider.launch(lab.request("n-2/launch/1"))
        assert again == first
        assert other.machine_id != first.machine_id
        assert await listed(provider) == [first, other]

    async def test_launches_at_once_with_one_token_bring_one_machine(
        self, lab: ProviderLab
    ) -> None:
        """SC-255: 20 simultaneous provisions of one id make one machine."""
        one, two = await lab.open(), await lab.open()
        request = lab.request("n-1/launch/1")
        machines = await asyncio.gather(*[each.launch(request) for each in (one, two) * 10])
        assert len({machine.machine_id for machine in machines}) == 1
        assert await listed(one) == machines[:1]

    async def test_a_lost_answer_is_asked_for_again(self, lab: ProviderLab) -> None:
        provider = await lab.open()
        request = lab.request("n-1/launch/1")
        await cut_short(provider.launch(request))
        machine = await provider.launch(request)
        assert await listed(provider) == [machine]

    async def test_a_call_that_is_cut_short_does_no_harm(self, lab: ProviderLab) -> None:
        provider = await lab.open()
        machine = await provider.launch(lab.request("n-1/launch/1"))
        await cut_short(provider.get(machine.machine_id))
        assert await listed(provider) == [machine]
        await cut_short(provider.stop(machine.machine_id))
        await end(provider, machine.machine_id)
        assert await listed(provider) == []

    # -- after a crash -----------------------------------------------------------------------

    async def test_another_process_finds_and_ends_what_is_ours(self, lab: ProviderLab) -> None:
        machine = await (await lab.open()).launch(lab.request("n-1/launch/1"))
        reborn = await lab.open()
        assert await listed(reborn) == [machine]
        assert await reborn.launch(lab.request("n-1/launch/1")) == machine
        await end(reborn, machine.machine_id)
        assert not await lab.is_running(machine.machine_id)

    async def test_a_half_born_machine_is_found(self, lab: ProviderLab) -> None:
        request = lab.request("n-1/launch/1")
        await lab.leave_half_born(request)
        provider = await lab.open()
        (found,) = await listed(provider)
        assert (found.node_id, found.token) == (request.node_id, request.token)
        assert await provider.get(found.machine_id) == found
        await end(provider, found.machine_id)
        assert await listed(provider) == []

    async def test_a_half_born_machine_is_finished_by_its_token(self, lab: ProviderLab) -> None:
        request = lab.request("n-1/launch/1")
        await lab.leave_half_born(request)
        provider = await lab.open()
        machine = await provider.launch(request)
        assert await listed(provider) == [machine]
        assert await lab.is_running(machine.machine_id)

    # -- death -------------------------------------------------------------------------------

    async def test_a_stopped_machine_is_gone(self, lab: ProviderLab) -> None:
        provider = await lab.open()
        machine = await provider.launch(lab.request("n-1/launch/1"))
        other = await provider.launch(lab.request("n-2/launch/1"))
        await end(provider, machine.machine_id)
        assert not await lab.is_running(machine.machine_id)
        assert await lab.is_running(other.machine_id)
        assert await listed(provider) == [other]

    async def test_stopping_may_be_repeated(self, lab: ProviderLab) -> None:
        provider = await lab.open()
        machine = await provider.launch(lab.request("n-1/launch/1"))
        await asyncio.gather(*[provider.stop(machine.machine_id) for _ in range(3)])
        await end(provider, machine.machine_id)
        await provider.stop(machine.machine_id)
        assert await provider.get(machine.machine_id) is None

    @pytest.mark.parametrize("machine_id", ["no-such-machine", "..", "../..", "a/b", "-"])
    async def test_stopping_the_unknown_is_success(self, lab: ProviderLab, machine_id: str) -> None:
        provider = await lab.open()
        await provider.stop(MachineId(machine_id))
        assert await provider.get(MachineId(machine_id)) is None

    # -- what is not ours --------------------------------------------------------------------

    async def test_what_carries_no_label_is_not_touched(self, lab: ProviderLab) -> None:
        provider = await lab.open()
        foreign = await lab.make_foreign()
        assert await provider.get(foreign) is None
        assert await listed(provider) == []
        await provider.stop(foreign)
        assert await lab.is_running(foreign)

    async def test_another_fleets_machines_are_not_touched(self, lab: ProviderLab) -> None:
        theirs = await (await lab.open("f-theirs")).launch(lab.request("n-1/launch/1", "f-theirs"))
        ours = await lab.open("f-ours")
        machine = await ours.launch(lab.request("n-1/launch/1", "f-ours"))
        assert machine.machine_id != theirs.machine_id
        assert await listed(ours) == [machine]
        assert await ours.get(theirs.machine_id) is None
        await ours.stop(theirs.machine_id)
        assert await lab.is_running(theirs.machine_id)

    # -- failures ----------------------------------------------------------------------------

    @pytest.mark.parametrize("failure", CLOSED_SET, ids=lambda failure: failure.CODE)
    async def test_each_failure_is_one_of_the_closed_set(
        self, lab: ProviderLab, failure: type[ProviderFailed]
    ) -> None:
        provocation = lab.provocations().get(failure)
        if provocation is None:
            assert lab.never_fails_with().get(failure), f"say why {failure.CODE} cannot happen"
            return
        before = await listed(await lab.open())
        with pytest.raises(failure):
            await provocation.call()
        if not provocation.has_effect:
            assert await listed(await lab.open()) == before

    async def test_offers_have_names_of_their_own(self, lab: ProviderLab) -> None:
        offers = await (await lab.open()).offers()
        assert len({offer.name for offer in offers}) == len(offers)


async def cut_short(call: Coroutine[Any, Any, object]) -> None:
    """Begin a call and give it up, as the engine does when its deadline passes."""
    task = asyncio.ensure_future(call)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
