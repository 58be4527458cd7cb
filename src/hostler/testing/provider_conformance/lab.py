"""What a provider under test must offer to the suite."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from hostler.base.ids import MachineId
from hostler.ports.provider import LaunchRequest, Provider, ProviderFailed


@dataclass(frozen=True)
class Provocation:
    """How one failure is brought about.

    Attributes:
        call: Makes the call that fails.
        has_effect: True: the machine may exist all the same (an unknown outcome).
    """

    call: Callable[[], Awaitable[object]]
    has_effect: bool = False


class ProviderLab(Protocol):
    """One platform of its own, which outlives the providers that are opened on it."""

    async def open(self, fleet_id: str = "f-ours") -> Provider:
        """Open a provider that remembers nothing, as after a crash."""
        ...

    def request(self, token: str, fleet_id: str = "f-ours") -> LaunchRequest:
        """Return a launch that the platform grants, for a node named after the token."""
        ...

    async def leave_half_born(self, request: LaunchRequest) -> None:
        """Leave behind what a launch leaves that dies half way, as late as it can."""
        ...

    async def make_foreign(self) -> MachineId:
        """Bring a machine into being that is nobody's of ours; return its id."""
        ...

    async def is_running(self, machine_id: MachineId) -> bool:
        """Say whether there is such a machine, without asking a provider."""
        ...

    def provocations(self) -> Mapping[type[ProviderFailed], Provocation]:
        """Return how each failure can be brought about here."""
        ...

    def never_fails_with(self) -> Mapping[type[ProviderFailed], str]:
        """Return the failures that this platform does not know, and why."""
        ...
