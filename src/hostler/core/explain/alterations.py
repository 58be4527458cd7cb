"""Alterations: single facts that an explanation may take to be different.

They are written as `NAME=VALUE`, such as `uncordon=n-000001` or `capacity=6`. What would have to
change for a node to do is found by trying some of them (`ways`), and a decision is made again with
those that a person names (`rerun`). They are applied in a transaction that is always undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from hostler.base.errors import Rejected
from hostler.core.explain.strictness import preferred, required_rules
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Node, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.bundle import Job
from hostler.model.node import Health
from hostler.model.replica import ReplicaPhase
from hostler.model.shape import Capability, Device, Requirement

_LIVE_TEXT: Final = "the id of an allocation, or of a replica that has one"


class Alteration(msgspec.Struct, frozen=True):
    """One fact that is taken to be different."""

    name: str
    value: str

    def __str__(self) -> str:
        """Write it as it is asked for."""
        return f"{self.name}={self.value}"


def read_alteration(text: str) -> Alteration:
    """Read `NAME=VALUE`.

    Raises:
        Rejected: There is no alteration of that name.
    """
    name, equals, value = text.partition("=")
    if not equals or not value or name not in _APPLY:
        known = "; ".join(f"{known}={meaning}" for known, (meaning, _) in _APPLY.items())
        raise Rejected(
            "alteration_unknown", f"{text!r} is none of the facts that can be altered: {known}"
        )
    return Alteration(name, value)


def apply(txn: Txn, replica_id: str, alterations: Iterable[Alteration]) -> None:
    """Make facts different for a decision about a replica; the caller abandons the transaction.

    Raises:
        Rejected: One of them does not go with what there is.
    """
    for alteration in alterations:
        _APPLY[alteration.name][1](txn, replica_id, alteration)


def with_less(requirement: Requirement, name: str, amount: int) -> Requirement:
    """Return a requirement of which one amount is another: a dimension, or a capability's count."""
    match name:
        case "capacity":
            return msgspec.structs.replace(requirement, capacity=amount)
        case "cores_milli":
            return msgspec.structs.replace(requirement, cores_milli=amount)
        case "memory_bytes":
            return msgspec.structs.replace(requirement, memory_bytes=amount)
        case _:
            requests = tuple(
                msgspec.structs.replace(each, count=amount) if each.name == name else each
                for each in requirement.capabilities
            )
            return msgspec.structs.replace(requirement, capabilities=requests)


# -- each of them --------------------------------------------------------------------------------


def _wrong(alteration: Alteration, message: str) -> Rejected:
    return Rejected("alteration_impossible", f"{alteration}: {message}")


def _node(txn: Txn, alteration: Alteration, node_id: str | None = None) -> Node:
    name = alteration.value if node_id is None else node_id
    node = txn.fleet.nodes.get(name)
    if node is None:
        raise _wrong(alteration, f"there is no node {name!r}")
    return node


def _bundle(txn: Txn, replica_id: str, alteration: Alteration) -> Bundle:
    name = replica_id.rsplit("/", 2)[0]
    bundle = txn.fleet.bundles.get(name)
    if bundle is None:
        raise _wrong(alteration, f"there is no bundle {name!r}")
    return bundle


def _amount(alteration: Alteration, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise _wrong(alteration, f"{text!r} is not a whole number")
    return int(text)


def _uncordon(txn: Txn, _: str, alteration: Alteration) -> None:
    node = _node(txn, alteration)
    txn.put(msgspec.structs.replace(node, cordon=None, drain=None))


def _heard(txn: Txn, _: str, alteration: Alteration) -> None:
    node = _node(txn, alteration)
    txn.put(
        msgspec.structs.replace(
            node, health=Health.LIVE, silent_since_at_ms=None, loss_held_until_at_ms=None
        )
    )


def _empty(txn: Txn, _: str, alteration: Alteration) -> None:
    node = _node(txn, alteration)
    for key in txn.fleet.index.allocations_by_node.keys(node.node_id):
        _take_away(txn, txn.fleet.allocations[key])
    _unleased(txn, "", alteration)


def _without(txn: Txn, _: str, alteration: Alteration) -> None:
    name = alteration.value
    keys = txn.fleet.index.allocations_by_replica.keys(name)
    allocation = txn.fleet.allocations.get(keys[-1] if keys else name)
    if allocation is None or not allocation.is_live:
        raise _wrong(alteration, f"{name!r} is not {_LIVE_TEXT}")
    _take_away(txn, allocation)


def _take_away(txn: Txn, allocation: Allocation) -> None:
    """Take it away with its replica's wish for a place, which would else take the room again."""
    txn.put(msgspec.structs.replace(allocation, phase=AllocationPhase.ENDED))
    node = txn.fleet.nodes.get(allocation.node_id)
    if node is not None:
        count = node.allocation_count - 1
        txn.put(msgspec.structs.replace(node, allocation_count=count))
    replica = txn.fleet.replicas.get(allocation.replica_id)
    if replica is not None and replica.phase is ReplicaPhase.PLACED:
        txn.put(msgspec.structs.replace(replica, phase=ReplicaPhase.DROPPED))


def _ordinary(txn: Txn, _: str, alteration: Alteration) -> None:
    node = _node(txn, alteration)
    txn.put(msgspec.structs.replace(node, is_spare=False, spare_band=None))


def _unleased(txn: Txn, _: str, alteration: Alteration) -> None:
    txn.put(msgspec.structs.replace(_node(txn, alteration), lease_count=0))


def _add(txn: Txn, replica_id: str, alteration: Alteration) -> None:
    node_id, _, what = alteration.value.partition("/")
    name, _, count_text = what.partition(":")
    node = _node(txn, alteration, node_id)
    count = _amount(alteration, count_text or "1")
    capabilities = node.shape.capabilities or ()
    asked = _asked_attributes(txn, replica_id, name)
    if any(device.kind == name for device in node.shape.devices):
        more = tuple(
            Device(kind=name, device_id=f"added-{number}", attributes=asked)
            for number in range(count)
        )
        shape = msgspec.structs.replace(node.shape, devices=(*node.shape.devices, *more))
    else:
        added = Capability(name=name, count=count, attributes=asked)
        shape = msgspec.structs.replace(node.shape, capabilities=(*capabilities, added))
    txn.put(msgspec.structs.replace(node, shape=shape))


def _asked_attributes(txn: Txn, replica_id: str, name: str) -> dict[str, str]:
    """Return attributes that satisfy what the replica asks of a capability."""
    found: dict[str, str] = {}
    job = _job(txn.fleet.bundles.get(replica_id.rsplit("/", 2)[0]), replica_id)
    for request in () if job is None else job.requirement.capabilities:
        if request.name == name:
            found |= {match.attribute: (*match.values, "true")[0] for match in request.matches}
            found |= request.attributes
    return found


def _exclusions(txn: Txn, replica_id: str, alteration: Alteration) -> None:
    replica = txn.fleet.replicas.get(replica_id)
    if alteration.value != "none":
        raise _wrong(alteration, "only `none` is understood")
    if replica is not None:
        txn.put(msgspec.structs.replace(replica, avoided=()))


def _pool(txn: Txn, replica_id: str, alteration: Alteration) -> None:
    bundle = _bundle(txn, replica_id, alteration)
    if alteration.value not in txn.fleet.pools:
        raise _wrong(alteration, f"there is no pool {alteration.value!r}")
    pools = (*bundle.fallback_pools, alteration.value)
    txn.put(msgspec.structs.replace(bundle, fallback_pools=pools))


def _prefer(txn: Txn, replica_id: str, alteration: Alteration) -> None:
    bundle = _bundle(txn, replica_id, alteration)
    job = _job(bundle, replica_id)
    known = [] if job is None else required_rules(bundle, job.name)
    if job is None or alteration.value not in known:
        told = ", ".join(known) or "none"
        raise _wrong(alteration, f"no required rule has that name; required are: {told}")
    less = preferred(job, alteration.value)
    jobs = tuple(less if each.name == job.name else each for each in bundle.jobs)
    txn.put(msgspec.structs.replace(preferred(bundle, alteration.value), jobs=jobs))


def _primary(txn: Txn, replica_id: str, alteration: Alteration) -> None:
    bundle = _bundle(txn, replica_id, alteration)
    if alteration.value != "interruptible":
        raise _wrong(alteration, "only `interruptible` is understood")
    txn.put(msgspec.structs.replace(bundle, is_primary_interruptible=True))


def _require(txn: Txn, replica_id: str, alteration: Alteration) -> None:
    bundle = _bundle(txn, replica_id, alteration)
    job = _job(bundle, replica_id)
    if job is None:
        raise _wrong(alteration, "its bundle has no such job")
    if alteration.name == "count":
        name, _, amount_text = alteration.value.rpartition(":")
        if all(each.name != name for each in job.requirement.capabilities):
            raise _wrong(alteration, f"the job asks for no {name!r}")
    else:
        name, amount_text = alteration.name, alteration.value
    less = with_less(job.requirement, name, _amount(alteration, amount_text))
    jobs = tuple(
        msgspec.structs.replace(each, requirement=less) if each.name == job.name else each
        for each in bundle.jobs
    )
    txn.put(msgspec.structs.replace(bundle, jobs=jobs))


def _job(bundle: Bundle | None, replica_id: str) -> Job | None:
    return None if bundle is None else bundle.job(replica_id.rsplit("/", 2)[1])


_APPLY: Final[dict[str, tuple[str, Callable[[Txn, str, Alteration], None]]]] = {
    "uncordon": ("NODE", _uncordon),
    "heard": ("NODE", _heard),
    "ordinary": ("NODE", _ordinary),
    "unleased": ("NODE", _unleased),
    "empty": ("NODE", _empty),
    "add": ("NODE/CAPABILITY:COUNT", _add),
    "without": ("ALLOCATION or REPLICA", _without),
    "exclusions": ("none", _exclusions),
    "pool": ("POOL", _pool),
    "prefer": ("RULE", _prefer),
    "primary": ("interruptible", _primary),
    "capacity": ("AMOUNT", _require),
    "cores_milli": ("AMOUNT", _require),
    "memory_bytes": ("AMOUNT", _require),
    "count": ("CAPABILITY:COUNT", _require),
}
"""By name: what its value is, and what it does."""

ALTERATIONS: Final = {name: meaning for name, (meaning, _) in _APPLY.items()}
"""Every alteration, and what its value is."""


def own_place(txn: Txn, replica: Replica) -> None:
    """Take away the place that a replica has itself, so that it is decided about as if anew.

    What one that waits again still holds, until it has stopped, is as taken as anybody's; room that
    is being made for it is not taken for it.
    """
    if replica.claim is not None:
        txn.change(replica, claim=None)
    if replica.phase is not ReplicaPhase.PLACED:
        return
    for key in txn.fleet.index.allocations_by_replica.keys(replica.replica_id):
        allocation = txn.fleet.allocations[key]
        txn.put(msgspec.structs.replace(allocation, phase=AllocationPhase.ENDED))
        node = txn.fleet.nodes.get(allocation.node_id)
        if node is not None:
            count = node.allocation_count - 1
            txn.put(msgspec.structs.replace(node, allocation_count=count))
