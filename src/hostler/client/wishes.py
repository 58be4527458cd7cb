"""What may be wanted of a lease, beside its pool: the keywords of `Client.lease`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypedDict

from hostler.wire.http import AcquireRequest, LeaseView, RequirementView


class LeaseWishes(TypedDict, total=False):
    """Keywords of `lease`; each may be left out.

    Attributes:
        key: Fairness key: keys take turns, and share the pool's cap. Else the caller's name.
        requires: Capacity, cores, memory and capabilities that a slot must have.
        selector: Which labels its node must have: `rack=a, zone in (x, y), gpu, !slow`.
        labels: For those who look at it later.
        priority: One more is worth the pool's `line_step` in line.
        affinity_node_id: A node to prefer.
        affinity_lease_id: A former lease whose node to prefer.
        affinity_wait_ms: How long to wait for that node alone.
        is_affinity_required: Take no other node.
        excluded_node_ids: Nodes not to take.
        share: With whom to share a node of several slots.
        timeout_ms: Longest time in line.
        lease_ms: It ends so long after its last heartbeat.
        ack_ms: It is taken back, its node untouched, unless taken up so soon after the grant.
    """

    key: str
    requires: RequirementView
    selector: str
    labels: dict[str, str]
    priority: int
    affinity_node_id: str | None
    affinity_lease_id: str | None
    affinity_wait_ms: int
    is_affinity_required: bool
    excluded_node_ids: Sequence[str]
    share: Literal["none", "same_key", "any"]
    timeout_ms: int
    lease_ms: int | None
    ack_ms: int | None


OnWaiting = Callable[[LeaseView], None]
"""Told whenever a lease still waits, with the reason."""


def asked_for(pool: str, wanted: LeaseWishes) -> AcquireRequest:
    """Write wishes as a request."""
    given = dict(wanted)
    if "excluded_node_ids" in wanted:
        given["excluded_node_ids"] = list(wanted["excluded_node_ids"])
    return AcquireRequest(pool=pool, **given)  # type: ignore[arg-type]  # the same names and types
