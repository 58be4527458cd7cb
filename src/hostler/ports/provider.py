"""Providers: who has machines, and the closed set of ways in which asking them can fail.

A provider is dumb on purpose: it translates one call into the platform's words and one answer back.
It makes no second attempt, falls back on nothing and knows no pools; the engine cancels a call that
takes too long, and the core decides what a failure means. Every provider passes
`hostler.testing.provider_conformance`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import ClassVar, Final, Protocol, runtime_checkable

import msgspec

from hostler.base.errors import Effect, Failed
from hostler.base.ids import MachineId, NodeId
from hostler.model.node import NoticeKind
from hostler.model.pool import Offer
from hostler.ports.clock import Clock

PROVIDER_API_VERSION: Final = 1
"""Of what this file says. It rises when a provider written for it would no longer do."""


class Secret:
    """A text that shows itself only when asked to, so that it stays out of logs and traces."""

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text; for the one place that hands it on."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(…)"


class LaunchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a new machine is made from."""

    token: str
    """The same token is the same launch: asking again brings the machine that is there already."""
    fleet_id: str
    node_id: NodeId
    epoch: int
    pool: str
    tier: str
    zone: str = ""
    offer: Offer
    options: msgspec.Struct
    """Of the tier, as the provider's `options_type`."""
    server_url: str
    """Where the machine's agent finds its server."""
    join_token: Secret
    """With it the agent becomes this node, and no other."""
    silence_ms_max: int
    """The machine ends itself when its agent was without the server for so long."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine of ours, as its labels tell it."""

    machine_id: MachineId
    fleet_id: str
    node_id: NodeId
    epoch: int
    token: str
    pool: str = ""
    tier: str = ""
    created_at_ms: int
    expires_at_ms: int
    """When it ends itself if its agent never reaches the server."""
    hostname: str = ""
    notice: NoticeKind | None = None
    """The platform is about to take it back."""
    ends_at_ms: int = 0
    """When that happens, if there is a notice."""
    started_at_ms: int | None = None
    """When it began to cost, where that is not when it was created."""


class Provider(Protocol):
    """One platform, seen by one fleet. Any call may be cancelled at any time."""

    async def launch(self, request: LaunchRequest) -> Machine:
        """Bring a machine into being, labelled from its first moment.

        Raises:
            ProviderFailed: One of the closed set below; after `OutcomeUnknown` ask again with the
                same token, or stop it by its label.
        """
        ...

    async def get(self, machine_id: MachineId) -> Machine | None:
        """Return the machine while it exists in any state that may cost money; `None`: it is gone.

        A machine without our fleet's label does not exist for us.
        """
        ...

    def list_owned(self) -> AsyncIterator[Machine]:
        """Yield every machine with our fleet's label, half-born ones too.

        An error means that the list is not complete.
        """
        ...

    async def stop(self, machine_id: MachineId) -> None:
        """Begin (or go on) ending a machine. What is gone is success; so is what is not ours.

        Only `get` says whether it is gone.
        """
        ...

    async def offers(self) -> Sequence[Offer]:
        """Return the kinds of machine that can be had by name, as far as the provider knows."""
        ...

    async def close(self) -> None:
        """Let go of connections and threads. Machines stay."""
        ...


@runtime_checkable
class TellsEnds(Protocol):
    """What a provider may offer beside: when a machine of ours that is gone ended.

    Its word goes into the books in place of the instant at which we learnt of it.
    """

    async def ended_at_ms(self, machine_id: MachineId) -> int | None:
        """Return when a machine that is gone ended; `None` if that is not remembered."""
        ...


@runtime_checkable
class TellsBootLog(Protocol):
    """What a provider may offer beside: what a machine of ours wrote as it booted.

    It is asked for when a boot has failed, before the machine is stopped, and shown to people
    without what looks like a secret.
    """

    async def boot_log(self, machine_id: MachineId, bytes_max: int) -> str:
        """Return the end of it, also of a machine that has ended; empty when there is none.

        Raises:
            ProviderFailed: It cannot be had now.
        """
        ...


class ProviderContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider is told once, when it is opened."""

    fleet_id: str
    """The label by which our machines are known."""
    folder: Path
    """Where it may keep files; its own, and not made yet."""
    clock: Clock


class SelfCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a provider has looked at for an operator, without changing anything."""

    subject: str
    """What was looked at: a host, an image, an account."""
    is_good: bool
    detail: str
    """What was found; where it is not good, what to do about it."""


class ProviderKind(msgspec.Struct, frozen=True, kw_only=True):
    """What the entry point group `hostler.providers` finds: how to check options, and to open."""

    name: str
    api_version: int
    """The number that `PROVIDER_API_VERSION` had when the provider was written: a literal."""
    options_type: type[msgspec.Struct]
    """The shape of a tier's `options`; unknown fields must be forbidden."""
    open: Callable[[ProviderContext], Provider]
    has_agents: bool = True
    """Whether its machines run an agent of ours. Where they do not, what is opened is a
    `hostler.ports.commands.CommandProvider`, and the server acts as their agent."""
    check: Callable[[ProviderContext, msgspec.Struct], Awaitable[Sequence[SelfCheck]]] | None = None
    """Looks whether a tier with these options could launch: credentials, reachability, images. It
    changes nothing anywhere. `None`: there is nothing to look at."""
    problems: Callable[[msgspec.Struct], Sequence[str]] | None = None
    """Says what is wrong with options that fit their type, such as two that exclude each other."""


class ProviderFailed(Failed):
    """Root of the closed set. Anything else that escapes a provider is a defect of it."""

    CODE: ClassVar[str]
    EFFECT: ClassVar[Effect] = "none"

    def __init__(
        self, message: str, *, retry_after_ms: int | None = None, **fields: object
    ) -> None:
        super().__init__(
            self.CODE, message, effect=self.EFFECT, retry_after_ms=retry_after_ms, **fields
        )


class RequestInvalid(ProviderFailed):
    """The request will never be accepted as it stands; somebody must change the configuration."""

    CODE = "request_invalid"


class CapacityUnavailable(ProviderFailed):
    """The platform has no such machine to give at present; another offer or zone may do.

    Raised with `scope`: what is short, such as a zone or a kind of machine.
    """

    CODE = "capacity_unavailable"


class QuotaExceeded(ProviderFailed):
    """We have as much as we may have; less must be used, or a limit raised.

    Raised with `scope`: whose limit it is, such as a region or an account.
    """

    CODE = "quota_exceeded"


class CredentialsRejected(ProviderFailed):
    """The platform does not let us; an operator must act."""

    CODE = "credentials_rejected"


class Throttled(ProviderFailed):
    """We ask too often. Raised with `retry_after_ms`."""

    CODE = "throttled"


class OutcomeUnknown(ProviderFailed):
    """It may have happened; asking again with the same token or id is safe."""

    CODE = "outcome_unknown"
    EFFECT = "unknown"
