"""A world that is looked at from the side of those who rent."""

from typing import Any

import msgspec

from hostler.base.ids import MachineId
from hostler.core.delta import Delta
from hostler.core.fleet_settings import FleetSettings
from hostler.core.inputs import (
    AcquireLease,
    AgentSaidHello,
    ApplyConfiguration,
    FullScan,
    HeartbeatLease,
    ReleaseLease,
)
from hostler.core.replies import Accepted, Refused
from hostler.model import Lease, Node, Pool
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase, Origin
from hostler.testing.builders import SMALL, World, a_node


def a_launched_node(node_id: str = "n-900001", **changes: Any) -> Node:
    """Return a ready node of the pool's elastic tier, so one whose machine can be stopped."""
    given: dict[str, Any] = {
        "tier": "cloud",
        "provider": "fake",
        "offer": "small",
        "origin": Origin.LAUNCHED,
        "machine_id": MachineId(f"m-{node_id}"),
        "shape": SMALL,
        "incarnation": 1,
    }
    return a_node(node_id, **{**given, **changes})


class Rental(World):
    """A world with the verbs of leasing."""

    def request(self, name: str, **fields: Any) -> AcquireLease:
        """Return a request for a slot, to be put into a batch."""
        given: dict[str, Any] = {"pool": "p", "timeout_ms": 1_000, "principal": "tester"}
        return AcquireLease(request_id=name, **{**given, **fields})

    def answered(self, name: str) -> Lease:
        """Return the lease that a request of a batch was answered with."""
        answer = self.replies[name]
        assert isinstance(answer, Accepted), answer
        return self.fleet.leases[answer.subject_id]

    def refused(self, **fields: Any) -> Refused:
        """Ask for a slot and return the refusal."""
        answer = self.ask(AcquireLease, **{"pool": "p", "timeout_ms": 1_000, **fields})
        assert isinstance(answer, Refused), answer
        return answer

    def now(self, lease: Lease) -> Lease:
        """Return a lease as it is now."""
        return self.fleet.leases[lease.lease_id]

    def node_of(self, lease: Lease) -> Node:
        """Return the node that a lease is or was on."""
        node_id = self.now(lease).node_id
        assert node_id is not None
        return self.fleet.nodes[node_id]

    def release(
        self, lease: Lease, outcome: LeaseOutcome = LeaseOutcome.HEALTHY, **fields: Any
    ) -> Accepted | Refused:
        """End a lease."""
        return self.ask(ReleaseLease, lease_id=lease.lease_id, outcome=outcome, **fields)

    def poison(self, lease: Lease, **fields: Any) -> Accepted | Refused:
        """End a lease as poison."""
        return self.release(lease, LeaseOutcome.POISON, **fields)

    def heartbeat(self, lease: Lease, **fields: Any) -> Accepted | Refused:
        """Renew a lease."""
        given = {"lease_id": lease.lease_id, "epoch": lease.epoch}
        return self.ask(HeartbeatLease, **{**given, **fields})

    def held(self) -> list[str]:
        """Return the ids of held leases."""
        return self.in_phase(LeasePhase.HELD)

    def in_phase(self, phase: LeasePhase) -> list[str]:
        """Return the ids of leases in a phase."""
        return [key for key, lease in self.fleet.leases.rows.items() if lease.phase is phase]

    def alive(self) -> list[Node]:
        """Return every node whose machine may exist."""
        return [n for n in self.fleet.nodes.in_order() if n.phase is not NodePhase.RETIRED]

    def hello(self, node: Node) -> AgentSaidHello:
        """Return what an agent says when it is ready to work."""
        return AgentSaidHello(node_id=node.node_id, incarnation=1, shape=node.shape)

    def launch(self) -> list[Node]:
        """Let every machine that was asked for come up, but no agent yet."""
        for command_id in self.commands("launch_machine"):
            self.succeed(command_id)
        return [n for n in self.fleet.nodes.in_order() if n.phase is NodePhase.STARTING]

    def boot(self) -> Delta:
        """Let every machine that was asked for come up and every agent say hello, in one step."""
        return self.run(*(self.hello(node) for node in self.launch()))

    def configure(self, *pools: Pool) -> Accepted | Refused:
        """Apply a configuration with these pools and the settings as they are."""
        settings = self.fleet.settings
        assert settings is not None
        names = {field.name for field in msgspec.structs.fields(FleetSettings)}
        kept = {name: getattr(settings, name) for name in names}
        return self.ask(
            ApplyConfiguration,
            fleet_id=settings.fleet_id,
            settings=FleetSettings(**kept),
            pools=pools,
        )

    def check_calm(self) -> None:
        """Look at everything again: there must be nothing left to do."""
        delta = self.run(FullScan())
        assert not delta.changes, f"a second look finds work: {sorted(delta.changes)}"
