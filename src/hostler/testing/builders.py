"""Builders: a fleet in a few words, for tests of the core.

Everything has a default that works, so a test says only what it is about. Records are put through
a transaction, so indexes, counts and timers are what they would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hostler.base.ids import MachineId, NodeId
from hostler.core import invariants
from hostler.core.allocation_fact import AllocationFact
from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.core.inputs import (
    AcquireLease,
    AllocationReported,
    AnyInput,
    CommandFailed,
    CommandSettled,
    FullScan,
    Succeeded,
)
from hostler.core.machine_fact import MachineFact
from hostler.core.replies import Accepted, Refused
from hostler.core.step import step
from hostler.core.txn import Txn
from hostler.model import Allocation, Lease, Node, Pool, Settings
from hostler.model.bundle import Job
from hostler.model.launch import Launch
from hostler.model.node import NodePhase, Origin
from hostler.model.pool import Offer, SpareTarget, Tier, TierKind
from hostler.model.record import Record
from hostler.model.shape import Capability, Requirement, Shape

SMALL = Shape(capacity=10, cores_milli=4_000, memory_bytes=8 * 2**30)
LARGE = Shape(
    capacity=100,
    cores_milli=32_000,
    memory_bytes=64 * 2**30,
    capabilities=(Capability(name="gpu", count=2),),
)


def an_elastic_tier(name: str = "cloud", **changes: Any) -> Tier:
    """Return a tier that launches small and large machines at the provider `fake`."""
    given: dict[str, Any] = {
        "name": name,
        "kind": TierKind.ELASTIC,
        "provider": "fake",
        "node_count_max": 100,
        "offers": (
            Offer(name="small", shape=SMALL, price_microusd_per_hour=100_000),
            Offer(name="large", shape=LARGE, price_microusd_per_hour=900_000),
        ),
    }
    return Tier(**{**given, **changes})


def a_fixed_tier(name: str = "own", **changes: Any) -> Tier:
    """Return a tier whose machines exist by themselves."""
    return Tier(**{"name": name, "kind": TierKind.FIXED, **changes})


def a_pool(name: str = "p", **changes: Any) -> Pool:
    """Return a pool with one elastic tier, unless told otherwise; `spare_count` of `spare_band`."""
    spares = SpareTarget(count=changes.pop("spare_count", 0), band=changes.pop("spare_band", None))
    if spares.count:
        changes["spares"] = (spares,)
    return Pool(**{"name": name, "tiers": (an_elastic_tier(),), **changes})


def a_node(
    node_id: str = "n-900001", *, pool: str = "p", tier: str = "own", **changes: Any
) -> Node:
    """Return a ready, live, idle node of capacity 10 and 8 cores, which joined by itself."""
    given: dict[str, Any] = {
        "node_id": NodeId(node_id),
        "pool": pool,
        "tier": tier,
        "origin": Origin.JOINED,
        "shape": Shape(capacity=10, cores_milli=8_000, memory_bytes=16 * 2**30),
        "is_inventory_reported": True,
        "phase": NodePhase.READY,
        "phase_since_at_ms": 0,
        "created_at_ms": 0,
        "boot_ms": 120_000,
        "idle_since_at_ms": 0,
    }
    return Node(**{**given, **changes})


def a_job(name: str = "main", *, capacity: int = 4, **changes: Any) -> Job:
    """Return a silver job that needs a little room."""
    given: dict[str, Any] = {
        "name": name,
        "launch": Launch(argv=("sleep", "1000")),
        "requirement": Requirement(capacity=capacity),
    }
    return Job(**{**given, **changes})


class World:
    """A fleet, its clock, and everything that its steps have let out.

    The least that a test of the core needs. It begins with everything looked at once, so commands
    that follow from the given records are out; `deltas` and events begin after that. `run` makes a
    step durable at once, applies it, checks every invariant, and remembers commands, events and
    replies. `succeed` and `fail` settle commands.
    """

    def __init__(self, *records: Record, now_ms: int = 0, **settings: Any) -> None:
        self.fleet = Fleet()
        self.now_ms = now_ms
        self.deltas: list[Delta] = []
        self.replies: dict[str, Accepted | Refused] = {}
        self._request_count = 0
        txn = Txn(self.fleet, now_ms)
        txn.put(Settings(**{"fleet_id": "f-test", **settings}))
        for record in sorted(records, key=lambda r: not isinstance(r, Pool)):
            txn.put(record)
        self.fleet.keep(txn.close())
        self.run(FullScan())
        self.deltas.clear()

    def run(self, *inputs: AnyInput, at_ms: int | None = None) -> Delta:
        """Make one step, and then all that are due at once after it."""
        self.now_ms = self.now_ms if at_ms is None else at_ms
        delta = self._step(inputs)
        while self.fleet.timers.next_at_ms() is not None and (
            (self.fleet.timers.next_at_ms() or 0) <= self.now_ms
        ):
            self._step(())
        return delta

    def _step(self, inputs: Sequence[AnyInput]) -> Delta:
        delta = step(self.fleet, inputs, self.now_ms)
        invariants.check_changed(self.fleet, delta)
        self.fleet.keep(delta)
        invariants.check_all(self.fleet)
        self.deltas.append(delta)
        for reply in delta.replies:
            self.replies[reply.request_id] = reply.result
        return delta

    def advance(self, to_ms: int) -> None:
        """Let the clock run to an instant, with a step at each that the fleet asks for."""
        while (at_ms := self.fleet.timers.next_at_ms()) is not None and at_ms <= to_ms:
            self.run(at_ms=max(at_ms, self.now_ms))
        self.run(at_ms=to_ms)

    def ask(self, kind: type[Any], **fields: Any) -> Accepted | Refused:
        """Make a request, run a step with it, and return its answer."""
        self._request_count += 1
        request_id = f"r{self._request_count}"
        given = {"request_id": request_id, "principal": "tester", **fields}
        self.run(kind(**given))
        return self.replies[request_id]

    def acquire(self, pool: str = "p", *, timeout_ms: int = 1_000, **fields: Any) -> Lease:
        """Ask for a lease and return it as it is after the step."""
        answer = self.ask(AcquireLease, pool=pool, timeout_ms=timeout_ms, **fields)
        if isinstance(answer, Refused):
            raise AssertionError(f"refused: {answer.code}: {answer.message}")
        return self.fleet.leases[answer.subject_id]

    @property
    def outbox(self) -> dict[str, str]:
        """Unsettled commands: their names by id."""
        return {
            key: str(type(entry.command).__struct_config__.tag)
            for key, entry in sorted(self.fleet.commands.rows.items())
        }

    def commands(self, name: str) -> list[str]:
        """Return the ids of unsettled commands of one name, such as `launch_machine`."""
        return [key for key, found in self.outbox.items() if found == name]

    def succeed(self, command_id: str, *machines: MachineFact) -> Delta:
        """Settle a command well. A launch without a machine given gets one named after its node."""
        entry = self.fleet.commands[command_id]
        name = self.outbox[command_id]
        if name == "launch_machine" and not machines:
            node = self.fleet.nodes[entry.command.node_id]  # type: ignore[union-attr]  # a launch has one
            machines = (
                MachineFact(
                    machine_id=MachineId(f"m-{node.node_id}"),
                    node_id=node.node_id,
                    epoch=node.epoch,
                    created_at_ms=self.now_ms,
                ),
            )
        return self.run(
            CommandSettled(command_id=entry.command_id, outcome=Succeeded(machines=machines))
        )

    def fail(self, command_id: str, code: str, message: str = "provoked") -> Delta:
        """Let one attempt at a command fail."""
        entry = self.fleet.commands[command_id]
        return self.run(
            CommandSettled(
                command_id=entry.command_id, outcome=CommandFailed(code=code, message=message)
            )
        )

    def report(self, allocation: Allocation, phase: str, **fields: Any) -> Delta:
        """Let an allocation's agent say what became of it."""
        return self.run(
            AllocationReported(
                node_id=allocation.node_id,
                fact=AllocationFact(
                    allocation_id=allocation.allocation_id,
                    epoch=allocation.epoch,
                    phase=phase,
                    **fields,
                ),
            )
        )

    def events(self) -> list[str]:
        """Return the kinds of all events so far."""
        return [event.kind.value for delta in self.deltas for event in delta.events]

    def allocation_of(self, replica_id: str) -> Allocation | None:
        """Return the live allocation of a replica."""
        keys = self.fleet.index.allocations_by_replica.keys(replica_id)
        return self.fleet.allocations[keys[0]] if keys else None
