"""The sample passes the suites that every provider must."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from hostler_sample import PROVIDER
from hostler_sample.provider import SampleOptions, SampleProvider

from hostler.base.ids import MachineId, NodeId
from hostler.model.pool import Offer
from hostler.model.shape import Shape
from hostler.ports.provider import (
    CapacityUnavailable,
    CredentialsRejected,
    LaunchRequest,
    OutcomeUnknown,
    ProviderContext,
    ProviderFailed,
    QuotaExceeded,
    RequestInvalid,
    Secret,
    Throttled,
)
from hostler.testing.provider_conformance import (
    CommandConformance,
    ProviderConformance,
    Provocation,
)


class WallClock:
    """What time it is."""

    def now_ms(self) -> int:
        """Return the present instant."""
        return time.time_ns() // 1_000_000


class SampleLab:
    """A folder as a platform."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def open(self, fleet_id: str = "f-ours") -> SampleProvider:
        """Open a provider that remembers nothing."""
        context = ProviderContext(fleet_id=fleet_id, folder=self.folder, clock=WallClock())
        provider = PROVIDER.open(context)
        assert isinstance(provider, SampleProvider)
        return provider

    def request(
        self, token: str, fleet_id: str = "f-ours", options: SampleOptions | None = None
    ) -> LaunchRequest:
        """Return a launch that is granted."""
        return LaunchRequest(
            token=token,
            fleet_id=fleet_id,
            node_id=NodeId(token.partition("/")[0]),
            epoch=1,
            pool="p",
            tier="t",
            offer=Offer(name="small", shape=Shape(capacity=1)),
            options=options or SampleOptions(),
            server_url="http://127.0.0.1:1",
            join_token=Secret("secret"),
            silence_ms_max=60_000,
        )

    async def leave_half_born(self, request: LaunchRequest) -> None:
        """A folder is there whole or not at all: the last moment is when it is there."""
        await (await self.open(request.fleet_id)).launch(request)

    async def make_foreign(self) -> MachineId:
        """Make a folder without a label of ours."""
        (self.folder / "machines/sample-foreign").mkdir(parents=True)
        return MachineId("sample-foreign")

    async def is_running(self, machine_id: MachineId) -> bool:
        """Look at the disk."""
        return (self.folder / "machines" / machine_id).exists()

    def provocations(self) -> Mapping[type[ProviderFailed], Provocation]:
        """Return how failures are brought about."""
        return {
            RequestInvalid: Provocation(self._launch_for_another_fleet),
            QuotaExceeded: Provocation(self._launch_one_too_many),
        }

    async def _launch_for_another_fleet(self) -> None:
        await (await self.open()).launch(self.request("n-9/launch/1", "f-theirs"))

    async def _launch_one_too_many(self) -> None:
        request = self.request("n-9/launch/1", options=SampleOptions(folders_max=0))
        await (await self.open()).launch(request)

    def never_fails_with(self) -> Mapping[type[ProviderFailed], str]:
        """Return what cannot happen."""
        return {
            CapacityUnavailable: "a launch needs no room worth speaking of",
            CredentialsRejected: "the server's user owns the folder",
            Throttled: "nobody counts our calls",
            OutcomeUnknown: "a rename has happened or not",
        }


class TestSample(ProviderConformance, CommandConformance):
    """All of it."""

    @pytest.fixture
    def lab(self, tmp_path: Path) -> SampleLab:
        """A folder for each test."""
        return SampleLab(tmp_path / "sample")


def test_options_are_checked() -> None:
    """Typing errors are found before a machine is."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"folder_max": 3}', type=PROVIDER.options_type)
