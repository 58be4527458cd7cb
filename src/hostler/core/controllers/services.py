"""Services: keeps node services on the nodes where they are to run, and says what these have by it.

Reads:    bundles, nodes, allocations, replicas.
Writes:   replicas (one for each service and node), allocations (reserved, starting; asked to stop),
          nodes (how services are there, and what they add to the shape), bundles (observed).
Sends:    StartAllocation and StopAllocation, through `holds`.
Keeps:    INV-SERVICE-1, INV-SERVICE-2, INV-REPLICA-4.
Waits on: SERVICE_NOT_READY, and for room every reason of `placement.room`.

A service that is on a node, or would be as soon as it is needed, is *offered* there: what it
provides is part of the node's shape, and work that needs it may be given the node. Such work is
not started before the service is ready. A service that is not ready in time, or away for longer
than its patience, is offered no more, and what needs it moves on, gold first, since placing goes by
band. An eager service is always wanted; a lazy one while something on the node needs it and for
its linger after that. A node that takes no work keeps what it has. Failures are recovery's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from hostler.core import holds
from hostler.core.events import EventKind
from hostler.core.placement.feasible import standing_of
from hostler.core.provided import with_provided, without_provided
from hostler.core.service_copies import create, end, live, place, renew
from hostler.core.services import (
    consumers_on,
    in_order,
    service_replica_id,
    services_of,
)
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Node, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.node import NodePhase
from hostler.model.replica import ReplicaPhase
from hostler.model.service import (
    SERVICE_PREFIX,
    ServiceLife,
    ServiceSpec,
    ServiceState,
    service_name,
)
from hostler.model.shape import Capability

READS: Final = (Bundle, Node, Allocation, Replica)

_COMING: Final = (NodePhase.REQUESTED, NodePhase.STARTING)
_THERE: Final = (NodePhase.READY, NodePhase.DRAINING)


def reconcile(txn: Txn) -> None:
    """Look after the services of every node for which something has changed."""
    is_service_changed = any(key.startswith(SERVICE_PREFIX) for key in txn.changed_keys(Bundle))
    if not is_service_changed and not txn.fleet.index.bundles_of_services.count("all"):
        return
    services = in_order(services_of(txn.fleet))
    outdated = [each for each in services if each.observed_generation != each.generation]
    for node_id in _nodes_to_look_at(txn, is_all=is_service_changed or bool(outdated)):
        node = txn.fleet.nodes.get(node_id)
        if node is not None and node.phase in _THERE:
            _tend(txn, node, services)
        elif node is not None and node.phase in _COMING:
            _keep_promise(txn, node, services)
        elif node is not None:
            _leave(txn, node, services)
    for bundle in outdated:
        renew(txn, bundle)


def _nodes_to_look_at(txn: Txn, *, is_all: bool) -> list[str]:
    node_ids = dict.fromkeys(txn.changed_keys(Node))
    node_ids.update(dict.fromkeys(each.node_id for each in txn.changed(Allocation)))
    pinned = (each.node_id for each in txn.changed(Replica) if each.node_id is not None)
    node_ids.update(dict.fromkeys(pinned))
    for phase in (*_COMING, *_THERE) if is_all else ():
        node_ids.update(dict.fromkeys(txn.fleet.index.nodes_by_phase.keys(phase.value)))
    return list(node_ids)


def _leave(txn: Txn, node: Node, services: list[Bundle]) -> None:
    """Forget the copies on a node that goes, as far as they have ended."""
    for bundle in services:
        replica = txn.fleet.replicas.get(service_replica_id(bundle, node.node_id))
        if replica is not None:
            end(txn, replica)


# -- one node --------------------------------------------------------------------------------


def _tend(txn: Txn, node: Node, services: list[Bundle]) -> None:
    """Bring the services of a node up to date, those first that others need.

    A service that has begun or ended may be the first or the last that needs a lazy one before it,
    so it is gone through again until nothing more follows.
    """
    for _ in range(len(services) + 2):
        before = _extent(txn, node)
        node = _pass(txn, node, services)
        if _extent(txn, node) == before:
            break
    due = [
        at_ms
        for bundle in services
        if bundle.service is not None
        and (state := node.services.get(service_name(bundle.bundle_id))) is not None
        for at_ms in _instants(bundle.service, state)
        if at_ms > txn.now_ms
    ]
    if due:
        txn.wake(node, min(due))


def _extent(txn: Txn, node: Node) -> tuple[int, int, tuple[str, ...]]:
    """Return what tells whether something has begun, ended or been offered on a node."""
    index = txn.fleet.index
    count = index.allocations_by_node.count(node.node_id)
    return count, index.allocations_of_services.count(node.node_id), node.provided


def _pass(txn: Txn, node: Node, services: list[Bundle]) -> Node:
    names = {service_name(bundle.bundle_id) for bundle in services}
    states = {name: state for name, state in node.services.items() if name in names}
    for bundle in services:
        spec, name = bundle.service, service_name(bundle.bundle_id)
        if spec is None or (name not in states and not spec.is_for(node.pool, node.tier)):
            continue
        state = _follow(txn, node, bundle, spec, states.pop(name, None))
        if state is not None:
            states[name] = state
        node = _write(txn, txn.fleet.nodes[node.node_id], states)
    return _write(txn, node, states)


def _follow(
    txn: Txn, node: Node, bundle: Bundle, spec: ServiceSpec, known: ServiceState | None
) -> ServiceState | None:
    """Return how a service is on a node now, having begun or ended its copy as is due."""
    replica = txn.fleet.replicas.get(service_replica_id(bundle, node.node_id))
    is_closed = bool(standing_of(node))
    if known is None:
        if is_closed:
            return None  # it begins when the node takes work
        known = _fresh(txn, bundle, spec)
    now_ms, is_lazy = txn.now_ms, spec.life is ServiceLife.LAZY
    unmeant_ms = _first(known.unmeant_since_at_ms, now_ms)
    known = replace(
        known, unmeant_since_at_ms=None if spec.is_for(node.pool, node.tier) else unmeant_ms
    )
    if known.unmeant_since_at_ms is not None and now_ms >= unmeant_ms + spec.patience_ms:
        is_gone = replica is None or end(txn, replica)
        return None if is_gone else replace(known, is_ready=False, is_offered=False)
    is_used = next(consumers_on(txn.fleet, node, known.provides), None) is not None
    unused_ms = _first(known.unused_since_at_ms, now_ms)
    if is_lazy and not is_used and (replica is None or now_ms >= unused_ms + spec.linger_ms):
        if replica is not None and not end(txn, replica):
            return replace(known, is_ready=False, is_offered=False, deadline_at_ms=None)
        idle = known if known.is_offered and not known.is_ready else _fresh(txn, bundle, spec)
        return replace(idle, deadline_at_ms=None, unused_since_at_ms=None)
    if replica is None and not is_closed:
        known = replace(_fresh(txn, bundle, spec), unmeant_since_at_ms=known.unmeant_since_at_ms)
        replica = create(txn, node, bundle)
    if replica is not None and replica.phase is ReplicaPhase.PENDING:
        place(txn, node, bundle, replica)
    state = _judge(txn, spec, known, replica)
    return replace(state, unused_since_at_ms=unused_ms if is_lazy and not is_used else None)


def _first(known_ms: int | None, now_ms: int) -> int:
    return now_ms if known_ms is None else known_ms


def _instants(spec: ServiceSpec, state: ServiceState) -> Iterator[int]:
    """Give the instants at which the passing of time means something for a service."""
    if state.deadline_at_ms is not None and state.is_offered:
        yield state.deadline_at_ms
    if state.unmeant_since_at_ms is not None:
        yield state.unmeant_since_at_ms + spec.patience_ms
    if state.unused_since_at_ms is not None:
        yield state.unused_since_at_ms + spec.linger_ms


def _fresh(txn: Txn, bundle: Bundle, spec: ServiceSpec) -> ServiceState:
    """Return the state of a service whose copy is still to come."""
    patience_ms = max(spec.patience_ms, bundle.jobs[0].launch.ready_within_ms)
    return ServiceState(
        provides=_provides(spec),
        since_at_ms=txn.now_ms,
        deadline_at_ms=txn.now_ms + patience_ms,
    )


def _provides(spec: ServiceSpec) -> tuple[str, ...]:
    return tuple(sorted(each.name for each in spec.provides))


def _judge(
    txn: Txn, spec: ServiceSpec, known: ServiceState, replica: Replica | None
) -> ServiceState:
    """Say whether the service is ready, and whether it is still offered while it is not."""
    copy = None if replica is None else live(txn, replica)
    is_ready = copy is not None and copy.phase is AllocationPhase.READY
    known = replace(known, provides=_provides(spec))
    if is_ready:
        since_at_ms = known.since_at_ms if known.is_ready else txn.now_ms
        return replace(
            known, is_ready=True, is_offered=True, since_at_ms=since_at_ms, deadline_at_ms=None
        )
    deadline_ms = known.deadline_at_ms
    if deadline_ms is None:
        deadline_ms = txn.now_ms + spec.patience_ms
    if known.is_ready:
        known = replace(known, is_ready=False, since_at_ms=txn.now_ms)
    is_offered = known.is_offered and txn.now_ms < deadline_ms
    return replace(known, is_offered=is_offered, deadline_at_ms=deadline_ms)


# -- what the node has by it -----------------------------------------------------------------


def _write(txn: Txn, node: Node, states: dict[str, ServiceState]) -> Node:
    """Write how services are on a node; let those move on who need what is offered no more."""
    offered = {n for each in states.values() if each.is_offered for n in each.provides}
    return _reshape(txn, _put_states(txn, node, states), offered)


def _put_states(txn: Txn, node: Node, states: dict[str, ServiceState]) -> Node:
    if states == node.services:
        return node
    for name in sorted({*states, *node.services}):
        _tell(txn, node, name, node.services.get(name), states.get(name))
    return txn.change(node, services=dict(sorted(states.items())))


def _reshape(txn: Txn, node: Node, offered: set[str]) -> Node:
    """Have what is offered in the shape of a node, and nothing else but what the machine has."""
    own = without_provided(node.shape, node.provided)
    shape, provided = with_provided(own, _capabilities(txn, offered))
    if (shape, provided) == (node.shape, node.provided):
        return node
    lost = {*node.provided}.difference(provided)
    leaving = sorted(consumers_on(txn.fleet, node, lost), key=_by_band)
    txn.change(node, shape=shape, provided=provided)
    for allocation in leaving:
        told = f"{', '.join(sorted(lost))} is not provided on {node.node_id} any more"
        holds.request_stop(txn, allocation, told)
    return txn.fleet.nodes[node.node_id]


def _keep_promise(txn: Txn, node: Node, services: list[Bundle]) -> None:
    """Have a machine that is still to come promise no more than services will bring."""
    specs = [each.service for each in services if each.service is not None]
    coming = {n for spec in specs if spec.is_for(node.pool, node.tier) for n in _provides(spec)}
    if not coming.issuperset(node.provided):
        _reshape(txn, node, coming.intersection(node.provided))


def _capabilities(txn: Txn, names: set[str]) -> list[Capability]:
    return [
        each
        for bundle in services_of(txn.fleet)
        if bundle.service is not None
        for each in bundle.service.provides
        if each.name in names
    ]


def _by_band(allocation: Allocation) -> tuple[int, str]:
    return allocation.band.rank, allocation.allocation_id


def _tell(
    txn: Txn, node: Node, name: str, before: ServiceState | None, state: ServiceState | None
) -> None:
    about = {"node": node.node_id, "pool": node.pool, "service": name}
    was_ready = before is not None and before.is_ready
    is_ready = state is not None and state.is_ready
    if is_ready != was_ready:
        txn.emit(EventKind.SERVICE_READY if is_ready else EventKind.SERVICE_UNREADY, about)
    if before is not None and before.is_offered and (state is None or not state.is_offered):
        txn.emit(EventKind.SERVICE_WITHDRAWN, about)
