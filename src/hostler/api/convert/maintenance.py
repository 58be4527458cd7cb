"""Maintenance, with the nodes that each plan is about now."""

from __future__ import annotations

from hostler.api.convert.timetables import local_text
from hostler.core.fleet import Fleet
from hostler.model import Maintenance, Node
from hostler.model.maintenance import NodeMaintenance
from hostler.wire.http import MaintainedNodeView, MaintenanceView, NodeMaintenanceView


def on_node(record: NodeMaintenance | None) -> NodeMaintenanceView | None:
    """Show that a node is closed, or about to be."""
    if record is None:
        return None
    return NodeMaintenanceView(
        name=record.name,
        from_at_ms=record.from_at_ms,
        to_at_ms=record.to_at_ms,
        is_begun=record.is_begun,
        is_called_off=record.is_called_off,
    )


def maintenance(fleet: Fleet, record: Maintenance) -> MaintenanceView:
    """Show a plan."""
    plan = record.plan
    zone = plan.timetable.time_zone
    ends = (record.from_at_ms, record.to_at_ms)
    local = ["" if at_ms is None else local_text(at_ms, zone) for at_ms in ends]
    keys = fleet.index.nodes_maintained.keys("all")
    return MaintenanceView(
        name=record.name,
        reason=plan.reason,
        pools=list(plan.pools),
        labels=dict(plan.labels),
        node_ids=list(plan.node_ids),
        time_zone=zone,
        lead_ms=plan.lead_ms,
        is_forced=plan.is_forced,
        state=_state(fleet, record),
        from_at_ms=record.from_at_ms,
        to_at_ms=record.to_at_ms,
        from_local=local[0],
        to_local=local[1],
        nodes=[
            _node(node, node.maintenance)
            for node in (fleet.nodes[key] for key in keys)
            if node.maintenance is not None and node.maintenance.name == record.name
        ],
        added_by=None if record.added is None else record.added.by,
        added_at_ms=None if record.added is None else record.added.at_ms,
    )


def _state(fleet: Fleet, record: Maintenance) -> str:
    if record.from_at_ms is None:
        return "over"
    if record.from_at_ms <= fleet.now_ms:
        return "under_way"
    return "preparing" if record.is_near else "planned"


def _node(node: Node, closed: NodeMaintenance) -> MaintainedNodeView:
    left_count = node.lease_count + node.allocation_count
    if closed.is_called_off:
        state = "called_off"
    elif not closed.is_begun:
        state = "closing"
    else:
        state = "emptying" if left_count else "empty"
    return MaintainedNodeView(node_id=node.node_id, state=state, left_count=left_count)
