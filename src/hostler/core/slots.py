"""Slots: what one offers, and whether a requirement fits in it.

A node is cut into `slot_count` equal slots, so that any two leases on it can never together ask for
more than it has. A whole node in one slot is the usual case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hostler.core.provided import with_provided
from hostler.core.services import provided_in
from hostler.model import Lease, Node, Pool
from hostler.model.lease import Share
from hostler.model.node import NodePhase
from hostler.model.pool import TierKind
from hostler.model.reason import Reason
from hostler.model.shape import WHOLE_MILLI, CapabilityRequest, Requirement, Shape

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


def may_serve_again(node: Node | None) -> bool:
    """Say whether a node takes leases, or may once it is free, heard or uncordoned."""
    return (
        node is not None
        and node.retire_reason is None
        and node.phase not in (NodePhase.STOPPING, NodePhase.RETIRED)
    )


def can_share(node: Node, lease: Lease) -> bool:
    """Say whether those on the node and the lease consent to each other."""
    if not node.lease_count:
        return True
    if Share.NONE in (node.share, lease.share):
        return False
    if Share.SAME_KEY in (node.share, lease.share):
        return node.tenant_key == lease.fairness_key
    return True


def misfit(
    shape: Shape, slot_count: int, requirement: Requirement, labels: Mapping[str, str]
) -> Reason | None:
    """Return the first reason why one slot of such a node cannot serve, or `None` if it can."""
    for need, have, reason in (
        (requirement.capacity, shape.capacity, Reason.CAPACITY),
        (requirement.cores_milli, shape.cores_milli, Reason.CORES),
        (requirement.memory_bytes, shape.memory_bytes, Reason.MEMORY),
    ):
        if need and have is None:
            return Reason.NOT_REPORTED
        if have is not None and need * slot_count > have:
            return reason
    for wanted in requirement.capabilities:
        reason_missing = _capability_misfit(shape, slot_count, wanted)
        if reason_missing is not None:
            return reason_missing
    for rule in requirement.node_labels:
        if not rule.holds(labels):
            return Reason.NODE_LABELS
    return None


def _capability_misfit(shape: Shape, slot_count: int, wanted: CapabilityRequest) -> Reason | None:
    if shape.capabilities is None:
        return Reason.NOT_REPORTED
    named = [each for each in shape.capabilities if each.name == wanted.name]
    if not named:
        return Reason.CAPABILITY_MISSING
    alike = [each for each in named if wanted.accepts(each.attributes)]
    if not alike:
        return Reason.CAPABILITY_ATTRIBUTE
    sharing_count = WHOLE_MILLI // wanted.milli
    if sum(each.count for each in alike) * sharing_count < wanted.count * slot_count:
        return Reason.CAPABILITY_COUNT
    return None


def could_ever_fit(fleet: Fleet, pool: Pool, requirement: Requirement) -> bool:
    """Say whether any node of the pool, or any that it could launch, would serve.

    A fixed tier that no node has joined yet may bring anything, so it is given the doubt.
    """
    for tier in pool.tiers:
        if tier.kind is TierKind.FIXED:
            if fleet.index.nodes_by_tier.count(f"{pool.name}/{tier.name}") == 0:
                return True
        elif tier.node_count_max > 0 and any(
            misfit(offer.shape, pool.slot_count, requirement, tier.labels) is None
            for offer in tier.offers
        ):
            return True
    coming = provided_in(fleet, pool.name)
    return any(
        misfit(with_provided(shape, coming)[0], slot_count, requirement, labels)
        in (None, Reason.NOT_REPORTED)
        for shape, slot_count, labels in fleet.index.nodes_free.classes(pool.name)
    )
