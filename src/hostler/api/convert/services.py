"""Node services, and how they are on nodes."""

from __future__ import annotations

from hostler.api.convert.shapes import capability, requirement
from hostler.core.fleet import Fleet
from hostler.core.services import consumers_on, service_replica_id
from hostler.model import Bundle, Node
from hostler.model.node import NodePhase
from hostler.model.service import ServiceSpec, ServiceState, service_name
from hostler.wire.http import ServiceOnNodeView, ServiceView

_ORDER = ("withdrawn", "away", "starting", "ready", "on_demand")


def service(fleet: Fleet, bundle: Bundle, *, has_nodes: bool) -> ServiceView:
    """Show a service, with its nodes counted or told one by one."""
    spec = bundle.service or ServiceSpec(pools=())
    name = service_name(bundle.bundle_id)
    found = [(node, node.services[name]) for node in _nodes(fleet, spec) if name in node.services]
    nodes = [_on_node(fleet, bundle, node, state) for node, state in found] if has_nodes else []
    return ServiceView(
        name=name,
        bundle_id=bundle.bundle_id,
        life=spec.life,
        phase=bundle.phase,
        pools=list(spec.pools),
        tiers=list(spec.tiers),
        consumes=requirement(bundle.jobs[0].requirement),
        provides=[capability(each) for each in spec.provides],
        patience_ms=spec.patience_ms,
        linger_ms=spec.linger_ms,
        argv=list(bundle.jobs[0].launch.argv),
        generation=bundle.generation,
        observed_generation=bundle.observed_generation,
        node_count=len(found),
        ready_count=sum(state.is_ready for _, state in found),
        withdrawn_count=sum(not state.is_offered for _, state in found),
        nodes=sorted(nodes, key=lambda each: (_ORDER.index(each.state), each.node_id)),
    )


def _nodes(fleet: Fleet, spec: ServiceSpec) -> list[Node]:
    """Return the nodes of its pools, and those that it is just leaving."""
    keys = {key for pool in spec.pools for key in fleet.index.nodes_by_pool.keys(pool)}
    there = (fleet.nodes[key] for key in sorted(keys))
    return [node for node in there if node.phase in (NodePhase.READY, NodePhase.DRAINING)]


def _on_node(fleet: Fleet, bundle: Bundle, node: Node, state: ServiceState) -> ServiceOnNodeView:
    key = service_replica_id(bundle, node.node_id)
    replica = fleet.replicas.get(key)
    live = fleet.index.allocations_by_replica.keys(key)
    copy = fleet.allocations[live[-1]] if live else None
    return ServiceOnNodeView(
        node_id=node.node_id,
        state=state_of(state, is_there=replica is not None, had_copy=copy is not None),
        since_at_ms=state.since_at_ms,
        deadline_at_ms=state.deadline_at_ms,
        consumer_count=sum(1 for _ in consumers_on(fleet, node, state.provides)),
        allocation_id=None if copy is None else copy.allocation_id,
        allocation_phase=None if copy is None else copy.phase,
        reason=None if replica is None or copy is not None else replica.reason,
        reason_detail="" if replica is None or copy is not None else replica.reason_detail,
    )


def state_of(state: ServiceState, *, is_there: bool, had_copy: bool) -> str:
    """Say in a word how a service is on a node."""
    if state.is_ready:
        return "ready"
    if not state.is_offered:
        return "withdrawn"
    if not is_there:
        return "on_demand"
    return "starting" if had_copy else "away"
