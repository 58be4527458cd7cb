"""The installed fake provider in the light of spec/leasing.md 6.10."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.base.ids import MachineId
from hostler.ports.provider import CapacityUnavailable
from hostler.providers.fake.provider import FakeOptions
from tests.providers.labs import FakeFilesLab, launch_request


async def test_sc_195_fake(tmp_path: Path) -> None:
    """Provision twice gives one machine; destroy twice is fine; unknown probe gives an error."""
    lab = FakeFilesLab(tmp_path / "fake")
    provider = await lab.open()
    first = await provider.launch(lab.request("n-1/launch/1"))
    assert await provider.launch(lab.request("n-1/launch/1")) == first
    await provider.stop(first.machine_id)
    await provider.stop(first.machine_id)
    assert await provider.get(first.machine_id) is None
    with pytest.raises(CapacityUnavailable, match="no such machine"):
        await provider.probe(MachineId("fake-unknown"))


async def test_sc_195_a_destroy_that_takes_long_keeps_the_machine(tmp_path: Path) -> None:
    """An injected destroy failure keeps it: here it is one that takes long."""
    lab = FakeFilesLab(tmp_path / "fake")
    provider = await lab.open()
    request = launch_request("n-1/launch/1", "f-ours", FakeOptions(stop="10m"))
    machine = await provider.launch(request)
    await provider.stop(machine.machine_id)
    assert await provider.get(machine.machine_id) == machine
