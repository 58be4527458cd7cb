"""A provider in memory, with the truth about what exists and what it is billed for.

`FakeCloud` is the platform; it outlives whoever opens `FakeProvider`s on it, as a real one would.
It asks for the time only where its provider is given a clock, so it runs on virtual time; nothing
in it is random.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from hostler.base.ids import MachineId, numbered
from hostler.model.pool import Offer
from hostler.ports.clock import Clock
from hostler.ports.provider import (
    PROVIDER_API_VERSION,
    LaunchRequest,
    Machine,
    ProviderContext,
    ProviderFailed,
    ProviderKind,
    RequestInvalid,
)

Method = Literal["launch", "get", "list_owned", "stop", "offers"]


class FakeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tier's `options` for this provider."""

    zone: str = ""


@dataclass
class BilledMachine:
    """One line of the bill.

    Attributes:
        machine: As its label tells it.
        born_at_ms: From when it costs money.
        gone_at_ms: Until when; `None`: it still does.
        stops_at_ms: When it will be gone, once it was told to stop.
    """

    machine: Machine
    born_at_ms: int
    gone_at_ms: int | None = None
    stops_at_ms: int | None = None


@dataclass(frozen=True)
class _Fault:
    error: ProviderFailed
    is_done: bool


class FakeCloud:
    """The platform.

    Attributes:
        bill: Every machine that ever was, by id, oldest first.
        stop_ms: How long a machine takes to be gone once it was told to stop.
        pause: Awaited before each call has its effect; a slow platform is one that waits here.
        on_birth: Told of every new machine and of what it was made from, such as its join token.
    """

    def __init__(self, *, stop_ms: int = 0) -> None:
        self.bill: dict[MachineId, BilledMachine] = {}
        self.stop_ms = stop_ms
        self.pause: Callable[[Method], Awaitable[None]] | None = None
        self.on_birth: Callable[[Machine, LaunchRequest], None] | None = None
        self._machine_by_token: dict[str, MachineId] = {}
        self._stopping: dict[MachineId, BilledMachine] = {}
        self._faults: defaultdict[Method, deque[_Fault]] = defaultdict(deque)

    def fail_next(self, method: Method, error: ProviderFailed, *, is_done: bool = False) -> None:
        """Let a coming call of a method fail; calls fail in the order in which this was said.

        Args:
            method: Which call.
            error: What it raises.
            is_done: True: it has its effect first, and only the answer is lost.
        """
        self._faults[method].append(_Fault(error, is_done))

    def existing(self, now_ms: int) -> list[Machine]:
        """Return what costs money now, oldest first."""
        self._settle(now_ms)
        return [line.machine for line in self.bill.values() if line.gone_at_ms is None]

    def end(self, machine_id: MachineId, now_ms: int) -> None:
        """End a machine at once, as a platform does that takes one back."""
        line = self.bill[machine_id]
        if line.gone_at_ms is None:
            line.gone_at_ms = now_ms

    def launch(self, request: LaunchRequest, now_ms: int) -> Machine:
        """Bring a machine into being, or return the one that the token has brought already."""
        known = self._machine_by_token.get(request.token)
        if known is not None:
            return self.bill[known].machine
        machine = Machine(
            machine_id=MachineId(numbered("m", len(self.bill) + 1)),
            fleet_id=request.fleet_id,
            node_id=request.node_id,
            epoch=request.epoch,
            token=request.token,
            pool=request.pool,
            tier=request.tier,
            created_at_ms=now_ms,
            expires_at_ms=now_ms + request.silence_ms_max,
            hostname=f"host-of-{request.node_id}",
        )
        self.bill[machine.machine_id] = BilledMachine(machine, now_ms)
        self._machine_by_token[request.token] = machine.machine_id
        if self.on_birth is not None:
            self.on_birth(machine, request)
        return machine

    def stop(self, machine_id: MachineId, now_ms: int) -> None:
        """Tell a machine to stop."""
        line = self.bill[machine_id]
        if line.stops_at_ms is None:
            line.stops_at_ms = now_ms + self.stop_ms
            self._stopping[machine_id] = line

    def _settle(self, now_ms: int) -> None:
        for machine_id, line in list(self._stopping.items()):
            if line.stops_at_ms is not None and line.stops_at_ms <= now_ms:
                line.gone_at_ms = line.gone_at_ms or line.stops_at_ms
                del self._stopping[machine_id]

    def get(self, machine_id: MachineId, now_ms: int) -> Machine | None:
        """Return a machine that exists."""
        self._settle(now_ms)
        line = self.bill.get(machine_id)
        return None if line is None or line.gone_at_ms is not None else line.machine

    async def meet(self, method: Method) -> _Fault | None:
        """Let a call begin; return the fault that awaits it, having raised one without effect."""
        if self.pause is not None:
            await self.pause(method)
        faults = self._faults[method]
        fault = faults.popleft() if faults else None
        if fault is not None and not fault.is_done:
            raise fault.error
        return fault


class FakeProvider:
    """One fleet's view of a `FakeCloud`."""

    def __init__(self, fleet_id: str, clock: Clock, cloud: FakeCloud) -> None:
        self._fleet_id = fleet_id
        self._clock = clock
        self._cloud = cloud

    async def launch(self, request: LaunchRequest) -> Machine:
        """See `Provider.launch`."""
        fault = await self._cloud.meet("launch")
        if request.fleet_id != self._fleet_id:
            raise RequestInvalid("the request is for another fleet", token=request.token)
        machine = self._cloud.launch(request, self._clock.now_ms())
        _raise(fault)
        return machine

    async def get(self, machine_id: MachineId) -> Machine | None:
        """See `Provider.get`."""
        _raise(await self._cloud.meet("get"))
        return self._ours(machine_id)

    async def list_owned(self) -> AsyncIterator[Machine]:
        """See `Provider.list_owned`. A lost answer is an incomplete list: it breaks off."""
        fault = await self._cloud.meet("list_owned")
        for machine in self._cloud.existing(self._clock.now_ms()):
            if machine.fleet_id == self._fleet_id:
                yield machine
                _raise(fault)

    async def stop(self, machine_id: MachineId) -> None:
        """See `Provider.stop`."""
        fault = await self._cloud.meet("stop")
        if self._ours(machine_id) is not None:
            self._cloud.stop(machine_id, self._clock.now_ms())
        _raise(fault)

    async def ended_at_ms(self, machine_id: MachineId) -> int | None:
        """See `TellsEnds.ended_at_ms`."""
        line = self._cloud.bill.get(machine_id)
        return None if line is None else line.gone_at_ms

    async def offers(self) -> Sequence[Offer]:
        """See `Provider.offers`; here every name is good."""
        _raise(await self._cloud.meet("offers"))
        return ()

    async def close(self) -> None:
        """Nothing to let go of."""

    def _ours(self, machine_id: MachineId) -> Machine | None:
        machine = self._cloud.get(machine_id, self._clock.now_ms())
        return None if machine is None or machine.fleet_id != self._fleet_id else machine


def _raise(fault: _Fault | None) -> None:
    if fault is not None:
        raise fault.error


def fake_provider_kind(cloud: FakeCloud, name: str = "fake") -> ProviderKind:
    """Return what a registry is given so that a cloud can be used by name."""

    def opened(context: ProviderContext) -> FakeProvider:
        return FakeProvider(context.fleet_id, context.clock, cloud)

    return ProviderKind(
        name=name,
        api_version=PROVIDER_API_VERSION,
        options_type=FakeOptions,
        open=opened,
    )
