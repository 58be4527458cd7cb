"""A world that is looked at from the side of those who submit bundles."""

from typing import Any

import msgspec

from hostler.base.ids import AllocationId, BundleId, NodeId, ReplicaId
from hostler.core.allocation_fact import AllocationFact
from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.core.fleet_settings import FleetSettings
from hostler.core.inputs import (
    AgentSaidHello,
    ApplyConfiguration,
    DeleteBundle,
    DrainNode,
    FullScan,
    InventoryReported,
    JoinAgent,
    ResetBundle,
    ServerStarted,
    SilenceNoticed,
    SteerRollout,
    SubmitBundle,
)
from hostler.core.job_inputs import StartJob, StopJob
from hostler.core.provided import without_provided
from hostler.core.replies import Accepted, Refused
from hostler.core.services import NodeService
from hostler.model import Allocation, Bundle, Node, Pool, Replica, Rollout, TimeZone
from hostler.model.allocation import EndCause, Ended
from hostler.model.bundle import Job
from hostler.model.node import NodePhase
from hostler.model.record import Record
from hostler.model.rollout import Steering
from hostler.model.shape import Shape
from hostler.testing.builders import (
    World,
    a_fixed_tier,
    a_job,
    a_node,
    a_pool,
    an_elastic_tier,
)

N1, N2 = "n-900001", "n-900002"
"""The two nodes of the fixture of spec/placement.md 6: fixed, capacity 10 each."""


def pool_p(**changes: Any) -> Pool:
    """Return the fixture's pool: `own` is fixed, `cloud` launches small and large machines."""
    return a_pool(**{"tiers": (a_fixed_tier(), an_elastic_tier(zone="eu-1")), **changes})


def own_pool(**changes: Any) -> Pool:
    """Return a pool with the fixed tier only."""
    return a_pool(**{"tiers": (a_fixed_tier(),), **changes})


def n1(**changes: Any) -> Node:
    """Return the fixture's first node."""
    return a_node(N1, **{"incarnation": 1, **changes})


def n2(**changes: Any) -> Node:
    """Return the fixture's second node."""
    return a_node(N2, **{"incarnation": 1, **changes})


class Theatre(World):
    """A world with the verbs of placing, which begins with everything looked at once."""

    def __init__(self, *records: Record, **settings: Any) -> None:
        super().__init__(*records, **settings)
        self.run(FullScan())

    def submission(self, name: str = "b1", *jobs: Job, **fields: Any) -> SubmitBundle:
        """Return a submission, to be put into a batch."""
        given: dict[str, Any] = {"pool": "p", "principal": "tester", "request_id": f"s-{name}"}
        return SubmitBundle(
            bundle_id=BundleId(name), jobs=jobs or (a_job(),), **{**given, **fields}
        )

    def submit(self, name: str = "b1", *jobs: Job, **fields: Any) -> Accepted:
        """Submit a bundle that must be accepted."""
        answer = self.try_submit(name, *jobs, **fields)
        assert isinstance(answer, Accepted), answer
        return answer

    def try_submit(self, name: str = "b1", *jobs: Job, **fields: Any) -> Accepted | Refused:
        """Submit a bundle and return the answer."""
        given: dict[str, Any] = {"pool": "p", **fields}
        return self.ask(SubmitBundle, bundle_id=BundleId(name), jobs=jobs or (a_job(),), **given)

    def delete(self, name: str = "b1") -> Accepted | Refused:
        """Ask for a bundle to be deleted."""
        return self.ask(DeleteBundle, bundle_id=BundleId(name))

    def start_job(self, name: str = "b1", job: str = "main") -> Accepted | Refused:
        """Ask for a job to be started."""
        return self.ask(StartJob, bundle_id=BundleId(name), job=job)

    def stop_job(self, name: str = "b1", job: str = "main") -> Accepted | Refused:
        """Ask for a job to be stopped."""
        return self.ask(StopJob, bundle_id=BundleId(name), job=job)

    def reset(self, name: str = "b1", replica: str | None = None) -> Accepted | Refused:
        """Ask for the failures of a bundle, or of one replica, to be forgotten."""
        replica_id = None if replica is None else ReplicaId(replica)
        return self.ask(ResetBundle, bundle_id=BundleId(name), replica_id=replica_id)

    def steer(self, steering: Steering, name: str = "b1") -> Accepted | Refused:
        """Say something to a rollout."""
        return self.ask(SteerRollout, bundle_id=BundleId(name), steering=steering)

    def rollout(self, name: str = "b1") -> Rollout:
        """Return the latest rollout of a bundle."""
        return self.fleet.rollouts[name]

    def bundle(self, name: str = "b1") -> Bundle:
        """Return a bundle as it is now."""
        return self.fleet.bundles[name]

    def replica(self, key: str = "b1/main/0") -> Replica:
        """Return a replica as it is now."""
        return self.fleet.replicas[key]

    def place(self, key: str = "b1/main/0") -> str | None:
        """Return the node that a replica is on, or is to be on."""
        allocation = self.allocation_of(key)
        return None if allocation is None else allocation.node_id

    def places(self) -> dict[str, str]:
        """Return the node of each replica that has one."""
        return {
            allocation.replica_id: allocation.node_id
            for allocation in self.fleet.allocations.in_order()
            if allocation.is_live
        }

    def live(self, key: str = "b1/main/0") -> Allocation:
        """Return the live allocation of a replica that must have one."""
        allocation = self.allocation_of(key)
        assert allocation is not None, f"{key} has no place"
        return allocation

    def count(self, event: str) -> int:
        """Return how many events of a kind there have been."""
        return self.events().count(event)

    def become_ready(self, *keys: str) -> None:
        """Let replicas (all that have a place, unless named) run and be ready."""
        for key in keys or tuple(self.places()):
            self.report(self.live(key), "ready")

    def end(self, key: str = "b1/main/0", cause: EndCause = EndCause.EXITED, **how: Any) -> Delta:
        """Let a replica's workload end."""
        return self.report(self.live(key), "ended", ended=Ended(cause=cause, **how))

    def end_at(self, at_ms: int, key: str = "b1/main/0") -> None:
        """Let the clock run to an instant, and a replica fail then."""
        self.advance(at_ms)
        self.end(key)

    def finish_stops(self, node_id: str | None = None) -> None:
        """Let every agent, or that of one node, end what it was asked to stop."""
        for command_id in self.commands("stop_allocation"):
            allocation = self.fleet.allocations[command_id.partition("/")[0]]
            if allocation.is_live and node_id in (None, allocation.node_id):
                self.report(allocation, "ended", ended=Ended(cause=EndCause.STOPPED))

    def hear_inventory(self, node_id: str, shape: Shape | None = None) -> Delta:
        """Let an agent report what its node has; the same as before unless told otherwise."""
        node = self.fleet.nodes[node_id]
        return self.run(InventoryReported(node_id=node.node_id, shape=shape or own_shape(node)))

    def hello(
        self,
        node: Node,
        *facts: AllocationFact,
        incarnation: int = 1,
        shape: Shape | None = None,
    ) -> AgentSaidHello:
        """Return what an agent says when its link is up."""
        return AgentSaidHello(
            node_id=node.node_id,
            incarnation=incarnation,
            shape=shape or own_shape(node),
            allocations=facts,
        )

    def join(self, *, pool: str = "p", tier: str = "own", **shape: Any) -> Node:
        """Let a new agent join a fixed tier and say hello; capacity 10 unless told otherwise."""
        machine_id = f"m-{len(self.fleet.nodes)}"
        answer = self.ask(JoinAgent, pool=pool, tier=tier, machine_id=machine_id)
        assert isinstance(answer, Accepted), answer
        node_id = NodeId(answer.subject_id)
        given = {"capacity": 10, "cores_milli": 8_000, "memory_bytes": 16 * 2**30, **shape}
        self.run(AgentSaidHello(node_id=node_id, incarnation=1, shape=Shape(**given)))
        return self.fleet.nodes[node_id]

    def boot(self, *, is_together: bool = True) -> None:
        """Let every machine that was asked for come up, and its agent say hello."""
        for command_id in self.commands("launch_machine"):
            self.succeed(command_id)
        starting = [n for n in self.fleet.nodes.in_order() if n.phase is NodePhase.STARTING]
        if is_together:
            self.run(*(self.hello(node) for node in starting))
            return
        for node in starting:
            self.run(self.hello(node))

    def fall_silent(self, node_id: str) -> None:
        """Let nothing be heard of a node from now on."""
        node = self.fleet.nodes[node_id]
        self.run(SilenceNoticed(node_id=node.node_id, since_at_ms=self.now_ms))

    def lose(self, *node_ids: str) -> None:
        """Let nodes be silent until they are given up."""
        for node_id in node_ids:
            self.fall_silent(node_id)
        self.give_up()

    def give_up(self) -> None:
        """Let the clock run until whoever is silent is given up."""
        settings = self.fleet.settings
        assert settings is not None
        self.advance(self.now_ms + settings.lost_after_ms)

    def drain(self, node_id: str, deadline_ms: int = 600_000, *, is_forced: bool = False) -> None:
        """Ask for a node to be emptied."""
        self.ask(DrainNode, node_id=NodeId(node_id), deadline_ms=deadline_ms, is_forced=is_forced)

    def launched(self) -> list[Node]:
        """Return every node that was asked for and is not retired."""
        return [
            node
            for node in self.fleet.nodes.in_order()
            if node.provider and node.phase is not NodePhase.RETIRED
        ]

    def configure(
        self,
        *pools: Pool,
        services: tuple[NodeService, ...] = (),
        time_zones: tuple[TimeZone, ...] = (),
        **changes: Any,
    ) -> Accepted | Refused:
        """Apply a configuration with these pools and the settings as they are, but for changes."""
        settings = self.fleet.settings
        assert settings is not None
        kept = {f.name: getattr(settings, f.name) for f in msgspec.structs.fields(FleetSettings)}
        return self.ask(
            ApplyConfiguration,
            fleet_id=settings.fleet_id,
            settings=FleetSettings(**{**kept, **changes}),
            pools=pools,
            services=services,
            time_zones=time_zones,
        )

    def restart(self) -> Delta:
        """Let the server end and begin again, with only the records left."""
        old, fleet = self.fleet, Fleet()
        records = [record for table in old.tables.values() for record in table.rows.values()]
        fleet.load(records, revision=old.revision, event_seq=old.event_seq, now_ms=old.now_ms)
        self.fleet = fleet
        return self.run(ServerStarted())

    def ended(self, key: str) -> list[AllocationId]:
        """Return the ids of a replica's allocations that have ended."""
        rows = self.fleet.allocations.in_order()
        return [a.allocation_id for a in rows if a.replica_id == key and not a.is_live]

    def check_calm(self) -> None:
        """Look at everything again: there must be nothing left to do."""
        delta = self.run(FullScan())
        assert not delta.changes, f"a second look finds work: {sorted(delta.changes)}"


def own_shape(node: Node) -> Shape:
    """Return what the machine has by itself, which is what its agent knows."""
    return without_provided(node.shape, node.provided)


def fixture(*records: Record) -> tuple[Record, ...]:
    """Return the fixture of the specification: pool `p`, nodes `n1` and `n2`."""
    return (pool_p(), n1(), n2(), *records)
