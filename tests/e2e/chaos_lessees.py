"""Lessees of a chaos run: they take leases, run commands over them, and give them back or not."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from hostler.base.errors import HostlerError
from hostler.client import Client
from hostler.client.lease import HeldLease
from hostler.wire.http import AcquireRequest
from tests.e2e.chaos_world import ChaosWorld
from tests.eventually import pause

POOL = "runners"
KILLED_STATUS = 137
"""What a shell would say of a command that was killed, as some are here."""


@dataclass
class Lessees:
    """What the lessees saw of their leases."""

    world: ChaosWorld
    client: Client
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    holders: dict[str, str] = field(default_factory=dict)
    """Who was told to hold it, by lease and by node and epoch."""
    wrong: list[str] = field(default_factory=list)
    run_count: int = 0
    failed_count: int = 0

    async def live(self, name: str) -> None:
        """Take lease after lease until it is over."""
        rng = random.Random(f"{name} {self.world.rng.random()}")
        while not self.is_over.is_set():
            try:
                asked = AcquireRequest(pool=POOL, key=name, timeout_ms=15_000)
                lease = await self.client.acquire(asked)
            except HostlerError:
                self.failed_count += 1
                await pause(rng.uniform(0.05, 0.3))
                continue
            self._note(name, lease)
            await self._use(lease, rng)

    def _note(self, name: str, lease: HeldLease) -> None:
        for what in (lease.lease_id, f"{lease.node_id} epoch {lease.view.epoch}"):
            before = self.holders.setdefault(what, name + lease.lease_id)
            if before != name + lease.lease_id:
                self.wrong.append(f"{what} was given to {before} and {name}{lease.lease_id}")

    async def _use(self, lease: HeldLease, rng: random.Random) -> None:
        fate = rng.choice(["healthy"] * 6 + ["poison", "forgotten"])
        try:
            argv = self.world.command(lease.node_id, rng.uniform(0, 0.6))
            result = await lease.run(argv)
            self.run_count += 1
            if result.status not in (0, KILLED_STATUS):
                self.wrong.append(f"a command under {lease.lease_id} ended with {result.status}")
            if fate == "forgotten":
                return await _forget(lease)
            if fate == "poison":
                lease.poison("chaos")
            await lease.release()
        except HostlerError:
            self.failed_count += 1
            try:
                await lease.release()
            except HostlerError:
                return None  # it ends by itself at its deadline


async def _forget(lease: HeldLease) -> None:
    """Do as a program does that was killed: say nothing any more."""
    lease._beating.cancel()
    await asyncio.gather(lease._beating, return_exceptions=True)
