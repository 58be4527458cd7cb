"""The engine is stopped at each durable boundary; the next one brings the story to the same end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hostler.base.rng import Stream
from hostler.core import invariants
from hostler.engine.boundaries import Boundary
from hostler.engine.engine import Engine
from hostler.engine.replay import replay
from hostler.ports.store import Commit
from hostler.store.memory import MemoryDisk, MemoryStore
from hostler.testing.faulty_store import CommitFault, FaultOf, FaultyStore
from hostler.testing.virtual_time import VirtualClock, run_virtually
from tests.engine.lab import Crash, Ending, PowerSwitch, Story, World, ending_of

PASSAGES = ("first", "middle", "last")


def no_fault(_: Commit) -> CommitFault | None:
    return None


class Server:
    """Starts an engine, and another one whenever that has crashed."""

    def __init__(
        self, world: World, switches: Sequence[PowerSwitch], fault_of: FaultOf = no_fault
    ) -> None:
        self.world = world
        self.disk = MemoryDisk()
        self._fault_of = fault_of
        self.crash_count = 0
        self._switches = list(switches)
        self._engine: Engine | None = None

    def engine(self) -> Engine:
        assert self._engine is not None
        return self._engine

    async def run(self) -> None:
        while True:
            switch = self._switches.pop(0) if self._switches else PowerSwitch()
            store = FaultyStore(MemoryStore(self.disk), self._fault_of)
            self._engine = self.world.engine(store, switch)
            try:
                await self._engine.start()
                self.world.agents.attach(self._engine)
                await self._engine.wait_stopped()
                return
            except Crash:
                self.crash_count += 1
                self.world.agents.detach()
                await self._engine.abandon()


async def tell(*switches: PowerSwitch, fault_of: FaultOf = no_fault) -> tuple[Ending, int]:
    server = Server(World(VirtualClock()), switches, fault_of)
    running = asyncio.create_task(server.run())
    await asyncio.sleep(0)
    await Story(server.engine).tell()
    fleet = await server.engine().read(lambda fleet: fleet)
    invariants.check_all(fleet)
    ending = ending_of(fleet, server.world)
    await server.engine().stop()
    await running
    report = await replay(MemoryStore(server.disk))
    assert report.is_same, report
    return ending, server.crash_count


@pytest.fixture(scope="module")
def undisturbed() -> tuple[Ending, PowerSwitch]:
    switch = PowerSwitch()
    ending, crash_count = run_virtually(tell(switch))
    assert crash_count == 0
    return ending, switch


def test_the_undisturbed_story_ends_well(undisturbed: tuple[Ending, PowerSwitch]) -> None:
    ending, _ = undisturbed
    assert ending.outbox == []
    assert set(ending.starts.values()) == {1}
    assert ending.replica_phases == {}
    assert list(ending.lease_outcomes.values()) == ["healthy"]
    assert ending.machines_existing == ending.node_phases["ready"]


def test_every_boundary_is_passed_in_the_story(undisturbed: tuple[Ending, PowerSwitch]) -> None:
    """A new boundary needs a story that passes it, or the crash tests would not test it."""
    _, switch = undisturbed
    assert {boundary for boundary in Boundary if not switch.counts[boundary]} == set()


@pytest.mark.slow
@pytest.mark.parametrize("passage", PASSAGES)
@pytest.mark.parametrize("boundary", Boundary)
def test_a_crash_changes_nothing_in_the_end(
    undisturbed: tuple[Ending, PowerSwitch], boundary: Boundary, passage: str
) -> None:
    expected, counted = undisturbed
    count = counted.counts[boundary]
    which = {"first": 1, "middle": (count + 1) // 2, "last": count}[passage]
    ending, crash_count = run_virtually(tell(PowerSwitch(boundary, which)))
    assert crash_count == 1
    assert ending == expected


@pytest.mark.slow
@pytest.mark.parametrize("boundary", Boundary)
def test_a_crash_while_recovering_from_one_changes_nothing_either(
    undisturbed: tuple[Ending, PowerSwitch], boundary: Boundary
) -> None:
    expected, counted = undisturbed
    at_first = PowerSwitch(boundary, (counted.counts[boundary] + 1) // 2)
    ending, crash_count = run_virtually(tell(at_first, PowerSwitch(boundary)))
    assert crash_count == 2
    assert ending == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_disk_that_fails_on_and_off_changes_nothing(
    undisturbed: tuple[Ending, PowerSwitch], seed: int
) -> None:
    """Every other commit goes wrong, in one of all ways, and sometimes the power goes too."""
    rng = Stream(seed, "disk")

    def fault_of(_: Commit) -> CommitFault | None:
        return rng.choice(tuple(CommitFault)) if rng.chance(500_000) else None

    boundary = rng.choice(tuple(Boundary))
    ending, _ = run_virtually(tell(PowerSwitch(boundary, rng.between(1, 9)), fault_of=fault_of))
    assert ending == undisturbed[0]
