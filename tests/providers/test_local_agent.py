"""A machine on this host with its real agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hostler.providers.local.provider import LocalProvider
from hostler.testing.provider_conformance.suite import end, listed
from tests.eventually import eventually_async
from tests.providers.labs import LocalLab

pytestmark = [pytest.mark.slow, pytest.mark.e2e]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[LocalLab]:
    lab = LocalLab(tmp_path / "local")
    yield lab
    lab.clean_up()


async def test_a_machine_ends_itself_when_nobody_knows_it_any_more(lab: LocalLab) -> None:
    provider = LocalProvider(lab.context())
    request = msgspec.structs.replace(lab.request("n-1/launch/1"), silence_ms_max=1_000)
    machine = await provider.launch(request)
    assert await listed(provider) == [machine]

    async def is_gone() -> bool:
        return await provider.get(machine.machine_id) is None

    await eventually_async(is_gone, what="the machine has ended itself")
    assert not await lab.is_running(machine.machine_id)


async def test_a_machine_with_its_real_agent_is_stopped_whole(lab: LocalLab) -> None:
    provider = LocalProvider(lab.context())
    machine = await provider.launch(lab.request("n-1/launch/1"))
    log = lab.folder / "machines" / machine.machine_id / "agent.log"
    await end(provider, machine.machine_id)
    assert not await lab.is_running(machine.machine_id)
    assert not log.exists()
