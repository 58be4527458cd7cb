"""A world that is looked at from the side of machines."""

from typing import Any

import msgspec

from hostler.base.ids import MachineId, NodeId
from hostler.core.allocation_fact import AllocationFact
from hostler.core.delta import Delta
from hostler.core.fleet_settings import FleetSettings
from hostler.core.inputs import (
    AgentSaidHello,
    ApplyConfiguration,
    ContactResumed,
    DeleteBundle,
    FullScan,
    JoinAgent,
    SilenceNoticed,
    SubmitBundle,
)
from hostler.core.machine_fact import MachineFact
from hostler.core.replies import Accepted, Refused
from hostler.model import Allocation, Node, Pool, Settings
from hostler.model.bundle import Job
from hostler.model.calendar import TimeZone
from hostler.model.node import NodePhase, Origin
from hostler.testing.builders import SMALL, World, a_fixed_tier, a_job, a_node, a_pool


def a_launched_node(node_id: str = "n-900001", **changes: Any) -> Node:
    """Return a ready node of the elastic tier, so one whose machine is ours to stop."""
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


def an_own_node(node_id: str = "n-900001", **changes: Any) -> Node:
    """Return a ready node of a fixed tier without a provider."""
    return a_node(node_id, **{"incarnation": 1, **changes})


def an_own_pool(**changes: Any) -> Pool:
    """Return a pool that has nothing but a fixed tier."""
    return a_pool(**{"tiers": (a_fixed_tier(),), **changes})


class Stable(World):
    """A world with the verbs of machines and their agents."""

    def node(self, node_id: str = "n-900001") -> Node:
        """Return a node as it is now."""
        return self.fleet.nodes[node_id]

    def phases(self) -> dict[str, str]:
        """Return the phase of every node."""
        return {node.node_id: node.phase.value for node in self.fleet.nodes.in_order()}

    def in_phase(self, phase: NodePhase) -> list[Node]:
        """Return the nodes in a phase."""
        return [node for node in self.fleet.nodes.in_order() if node.phase is phase]

    def hello(
        self, node_id: str, *facts: AllocationFact, incarnation: int = 1, is_told: bool = True
    ) -> Delta:
        """Let an agent say what it is and what it runs."""
        shape = self.node(node_id).shape if is_told else None
        return self.run(
            AgentSaidHello(
                node_id=NodeId(node_id), incarnation=incarnation, shape=shape, allocations=facts
            )
        )

    def launch(self) -> list[Node]:
        """Let every launch that is out bring its machine."""
        for command_id in self.commands("launch_machine"):
            self.succeed(command_id)
        return self.in_phase(NodePhase.STARTING)

    def boot(self) -> list[Node]:
        """Let every launch that is out bring its machine, and its agent say hello."""
        nodes = self.launch()
        for node in nodes:
            self.hello(node.node_id)
        return [self.node(node.node_id) for node in nodes]

    def bury(self) -> None:
        """Let every stop that is out be confirmed."""
        for command_id in self.commands("stop_machine"):
            self.succeed(command_id)

    def list(self, *machines: MachineFact, provider: str = "fake") -> None:
        """Let a provider be asked for its list, and answer with these machines."""
        state = self.fleet.providers[provider]
        if not self.commands("list_machines"):
            self.advance(max(state.next_list_at_ms, self.now_ms))
        self.succeed(self.commands("list_machines")[0], *machines)

    def machine(self, node: Node, **changes: Any) -> MachineFact:
        """Return what a list says of a node's machine."""
        given: dict[str, Any] = {
            "machine_id": node.machine_id,
            "node_id": node.node_id,
            "pool": node.pool,
            "tier": node.tier,
        }
        return MachineFact(**{**given, **changes})

    def silence(self, *node_ids: str, since_at_ms: int | None = None, cut: bool = False) -> Delta:
        """Let nothing be heard of nodes any more."""
        since = self.now_ms if since_at_ms is None else since_at_ms
        return self.run(
            *(
                SilenceNoticed(node_id=NodeId(each), since_at_ms=since, is_link_down=cut)
                for each in node_ids or ("n-900001",)
            )
        )

    def contact(self, node_id: str = "n-900001") -> Delta:
        """Let a silent node be heard again on the same session."""
        return self.run(ContactResumed(node_id=NodeId(node_id)))

    def join(self, **fields: Any) -> Accepted | Refused:
        """Let an agent ask to be a node."""
        return self.ask(JoinAgent, **{"pool": "p", "tier": "own", **fields})

    def submit(self, name: str = "b", *jobs: Job, **fields: Any) -> None:
        """Submit a bundle, of a small job if nothing is said."""
        given: dict[str, Any] = {"bundle_id": name, "pool": "p", "jobs": jobs or (a_job(),)}
        answer = self.ask(SubmitBundle, **{**given, **fields})
        assert isinstance(answer, Accepted), answer

    def place(self, name: str = "b", *jobs: Job, **fields: Any) -> Allocation:
        """Submit a bundle and return the allocation of its first replica."""
        self.submit(name, *jobs, **fields)
        found = self.allocation_of(f"{name}/{(jobs or (a_job(),))[0].name}/0")
        assert found is not None
        return found

    def ask_to_delete(self, name: str) -> None:
        """Delete a bundle."""
        answer = self.ask(DeleteBundle, bundle_id=name)
        assert isinstance(answer, Accepted), answer

    def run_allocation(self, allocation: Allocation) -> Allocation:
        """Let an agent take an allocation on and say that it is ready."""
        self.succeed(f"{allocation.allocation_id}/start/{allocation.epoch}")
        self.report(allocation, "ready")
        return self.fleet.allocations[allocation.allocation_id]

    def configuration(self, *pools: Pool, **settings: Any) -> dict[str, Any]:
        """Return the fields of a configuration with these pools and the settings as they are."""
        names = {field.name for field in msgspec.structs.fields(FleetSettings)}
        now = self.fleet.settings or Settings(fleet_id="f-test")
        kept = {name: getattr(now, name) for name in names}
        return {
            "fleet_id": "f-new",
            "settings": FleetSettings(**{**kept, **settings}),
            "pools": pools,
        }

    def configure(
        self, *pools: Pool, time_zones: tuple[TimeZone, ...] = (), **settings: Any
    ) -> Accepted | Refused:
        """Apply a configuration with these pools, changing only these settings."""
        given = self.configuration(*pools, **settings)
        return self.ask(ApplyConfiguration, time_zones=time_zones, **given)

    def check_calm(self) -> None:
        """Look at everything again: there must be nothing left to do."""
        delta = self.run(FullScan())
        assert not delta.changes, f"a second look finds work: {sorted(delta.changes)}"
