"""Leasing in the core: how many slots can be taken and given back in a second.

A pair is an acquire, its release, and the agent's word that the lease is cleared away, with every
step kept as if it were durable. Fleets are warm: a node of one slot each, ready and live.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from bench.registry import at_least, benchmark, stopwatch
from hostler.base.ids import CommandId, LeaseId, NodeId
from hostler.core.fleet import Fleet
from hostler.core.inputs import AcquireLease, AnyInput, CommandSettled, ReleaseLease, Succeeded
from hostler.core.replies import Accepted
from hostler.core.step import step
from hostler.model import Meter, Node, Settings
from hostler.model.record import Record
from hostler.testing.builders import a_fixed_tier, a_node, a_pool

PAIRS: Final = 5_000
BATCH: Final = 32
"""Requests a step, as they gather while the step before is being made durable."""
MS_PER_STEP: Final = 2


@dataclass
class Renter:
    """A fleet whose steps are kept at once, and a clock that goes on with each."""

    fleet: Fleet
    now_ms: int = 0
    numbers: Iterator[int] = field(default_factory=count)

    def step(self, inputs: Sequence[AnyInput]) -> list[LeaseId]:
        """Make a step and return the leases that its requests were answered with."""
        self.now_ms += MS_PER_STEP
        delta = step(self.fleet, inputs, self.now_ms)
        self.fleet.keep(delta)
        answers = [reply.result for reply in delta.replies]
        return [LeaseId(a.subject_id) for a in answers if isinstance(a, Accepted)]

    def acquire(self, **fields: Any) -> AcquireLease:
        """Return a request for a slot."""
        given: dict[str, Any] = {"pool": "p", "timeout_ms": 0, "principal": "renter"}
        return AcquireLease(request_id=f"r{next(self.numbers)}", **{**given, **fields})

    def release(self, lease_id: LeaseId) -> ReleaseLease:
        """Return a request to give a slot back."""
        return ReleaseLease(
            request_id=f"r{next(self.numbers)}", principal="renter", lease_id=lease_id
        )

    def cleared(self, lease_id: LeaseId) -> CommandSettled:
        """Return the agent's answer to the command that follows a release."""
        epoch = self.fleet.leases[lease_id].epoch
        return CommandSettled(command_id=CommandId(f"{lease_id}/end/{epoch}"), outcome=Succeeded())


def a_warm_fleet(node_count: int, *, held_count: int = 0, **pool: Any) -> Renter:
    """Return a fleet of ready nodes, of which some are held."""
    on_the_books: dict[str, Any] = {"started_at_ms": 0, "metered_from_ms": 0}
    nodes: list[Node] = [
        a_node(f"n-{number:06d}", **on_the_books) for number in range(1, node_count + 1)
    ]
    fleet = Fleet()
    records: list[Record] = [
        Settings(fleet_id="f-bench"),
        a_pool(tiers=(a_fixed_tier(),), waiting_count_max=100_000, **pool),
        Meter(pool="p", tier="own", offer="", node_count=node_count, as_of_ms=0),
        *nodes,
    ]
    fleet.load(records, revision=1, event_seq=0, now_ms=0)
    renter = Renter(fleet)
    for start in range(0, held_count, 1_000):
        batch = [renter.acquire() for _ in range(min(1_000, held_count - start))]
        renter.step(batch)
    return renter


def pairs_per_second(renter: Renter, batch: int = BATCH, **fields: Any) -> float:
    """Take and give back, so many in one step, and return the rate."""
    rounds = PAIRS // batch
    with stopwatch() as watch:
        for _ in range(rounds):
            leases = renter.step([renter.acquire(**fields) for _ in range(batch)])
            renter.step([renter.release(lease_id) for lease_id in leases])
            renter.step([renter.cleared(lease_id) for lease_id in leases])
    return rounds * batch / watch.seconds


@benchmark("core_lease_pairs_100_nodes", unit="1/s", budget=at_least(10_000))
def pairs_100_nodes(_scratch: Path) -> float:
    """Pairs on a small fleet."""
    return pairs_per_second(a_warm_fleet(100))


@benchmark("core_lease_pairs_100k_nodes", unit="1/s", budget=at_least(10_000), runs=3)
def pairs_100k_nodes(_scratch: Path) -> float:
    """The same on a large one."""
    return pairs_per_second(a_warm_fleet(100_000))


@benchmark("core_lease_pairs_100k_nodes_99_held", unit="1/s", budget=at_least(10_000), runs=3)
def pairs_nearly_all_held(_scratch: Path) -> float:
    """The same where all but one in a hundred are held."""
    return pairs_per_second(a_warm_fleet(100_000, held_count=99_000))


@benchmark("core_lease_pairs_alone", unit="1/s")
def pairs_alone(_scratch: Path) -> float:
    """Pairs whose every request has a step of its own."""
    return pairs_per_second(a_warm_fleet(1_000), batch=1)


@benchmark("core_lease_pairs_affinity_and_caps", unit="1/s", budget=at_least(10_000), runs=3)
def pairs_affinity_and_caps(_scratch: Path) -> float:
    """Pairs that prefer a node, beside ten thousand leases in line whose key is at its cap."""
    renter = a_warm_fleet(10_000, lease_per_key_max=BATCH)
    capped = {"fairness_key": "capped", "timeout_ms": 86_400_000}
    for _ in range(10):
        renter.step([renter.acquire(**capped) for _ in range(1_000)])
    return pairs_per_second(renter, affinity_node_id=NodeId("n-005000"))


@benchmark("core_lease_handovers", unit="1/s", budget=at_least(10_000), runs=3)
def handovers(_scratch: Path) -> float:
    """Releases that each give the slot to the next of ten thousand in line."""
    renter = a_warm_fleet(BATCH)
    held = renter.step([renter.acquire() for _ in range(BATCH)])
    waiting: list[LeaseId] = []
    for _ in range(10):
        waiting += renter.step([renter.acquire(timeout_ms=86_400_000) for _ in range(1_000)])
    rounds = PAIRS // BATCH
    with stopwatch() as watch:
        for number in range(rounds):
            renter.step([renter.release(lease_id) for lease_id in held])
            renter.step([renter.cleared(lease_id) for lease_id in held])
            held = waiting[number * BATCH : (number + 1) * BATCH]
    return rounds * BATCH / watch.seconds
