"""What providers say of machines: launched, gone, listed, missing from a list.

A machine that carries our fleet's label and that no node stands for is somebody's bill, so it gets
a record at once, whose only way is out.
"""

from __future__ import annotations

from collections.abc import Iterable

from hostler.base.ids import NodeId
from hostler.core import outbox
from hostler.core.events import EventKind
from hostler.core.inputs import MachineFact
from hostler.core.machine_commands import has_machine, launch_command_id
from hostler.core.txn import Txn
from hostler.model import Node
from hostler.model.node import NodePhase, NodeTrigger, Origin, RetireReason


def launched(txn: Txn, node_id: NodeId, fact: MachineFact) -> None:
    """Write down which machine stands behind a node."""
    node = txn.fleet.nodes.get(node_id)
    if node is None or node.phase is NodePhase.RETIRED:
        came_late(txn, node_id, fact)
        return
    known = {"machine_id": fact.machine_id, "hostname": fact.hostname or node.hostname}
    if node.phase is not NodePhase.REQUESTED:
        txn.change(node, **known)
        return
    txn.move(node, NodeTrigger.LAUNCHED, **known)
    txn.emit(
        EventKind.NODE_LAUNCHED,
        {"node": node_id, "pool": node.pool},
        machine=fact.machine_id,
        launch_ms=txn.now_ms - node.created_at_ms,
    )


def came_late(txn: Txn, node_id: str, fact: MachineFact) -> None:
    """Look after a machine whose launch had been given up."""
    node = txn.fleet.nodes.get(node_id)
    if node is not None and node.phase is not NodePhase.RETIRED:
        if node.machine_id is None:
            launched(txn, node.node_id, fact)
        elif node.machine_id != fact.machine_id:
            _adopt_once(txn, node.provider, fact)
        return
    if node is not None and node.machine_id == fact.machine_id:
        return  # its end has been confirmed since
    provider = node.provider if node is not None else _provider_of(txn, fact)
    if provider:
        _adopt_once(txn, provider, fact)
    # Without a provider there is nobody to ask; the next list of whoever has it will bring it.


def _adopt_once(txn: Txn, provider: str, fact: MachineFact) -> None:
    if not _is_known(txn, provider, fact):
        adopt_orphan(txn, provider, fact)


def _is_known(txn: Txn, provider: str, fact: MachineFact) -> bool:
    """Say whether a node stands for the machine."""
    nodes = txn.fleet.nodes
    return any(
        nodes[key].phase is not NodePhase.RETIRED
        for key in txn.fleet.index.nodes_by_machine.keys(f"{provider}/{fact.machine_id}")
    )


def _provider_of(txn: Txn, fact: MachineFact) -> str:
    pool = txn.fleet.pools.get(fact.pool)
    tier = None if pool is None else pool.tier(fact.tier)
    return "" if tier is None else tier.provider


def is_gone(txn: Txn, node_id: NodeId) -> None:
    """Write down the provider's word that a node's machine no longer exists."""
    node = txn.fleet.nodes.get(node_id)
    if node is not None and node.phase is not NodePhase.RETIRED:
        txn.change(node, is_machine_gone=True)


def listed(txn: Txn, provider: str, asked_at_ms: int, facts: Iterable[MachineFact]) -> None:
    """Compare a provider's complete list with what we have.

    Args:
        txn: The step.
        provider: Whose list it is.
        asked_at_ms: When it was first asked for; what we learnt later cannot be missed by it.
        facts: Every machine that carries our fleet's label.
    """
    state = txn.fleet.providers.get(provider)
    if state is None:
        return
    present = set()
    for fact in facts:
        present.add(fact.machine_id)
        _seen(txn, provider, fact)
    counts = {}
    for key in txn.fleet.index.nodes_by_provider.keys(provider):
        node = txn.fleet.nodes[key]
        machine_id = node.machine_id
        if machine_id is None or node.origin is Origin.JOINED or not has_machine(node):
            continue
        if machine_id not in present and node.phase_since_at_ms < asked_at_ms:
            counts[str(machine_id)] = state.absent_list_counts.get(machine_id, 0) + 1
    txn.change(state, listed_at_ms=txn.now_ms, absent_list_counts=counts, asked_about=())


def _seen(txn: Txn, provider: str, fact: MachineFact) -> None:
    """Match one listed machine with its node, or adopt it as an orphan once it is old enough."""
    fleet = txn.fleet
    if _is_known(txn, provider, fact):
        return
    node = fleet.nodes.get(fact.node_id)
    if node is not None and node.phase is not NodePhase.RETIRED and node.machine_id is None:
        if node.phase is NodePhase.REQUESTED:
            outbox.withdraw(txn, launch_command_id(node))
        launched(txn, node.node_id, fact)
        return
    grace_ms = 0 if fleet.settings is None else fleet.settings.orphan_grace_ms
    is_retired = node is not None and node.phase is NodePhase.RETIRED
    if is_retired or fact.created_at_ms + grace_ms <= txn.now_ms:
        adopt_orphan(txn, provider, fact, is_foreign=not _was_ours(txn, fact.node_id))


def _was_ours(txn: Txn, node_id: str | None) -> bool:
    """Say whether the fleet has ever had a node of that name, as far as its records go back."""
    if node_id is None or node_id in txn.fleet.nodes:
        return node_id is not None
    prefix, _, number = node_id.partition("-")
    counter = txn.fleet.counters.get(prefix)
    return (
        prefix == "n"
        and number.isdigit()
        and counter is not None
        and (int(number) <= counter.value)
    )


def adopt_orphan(txn: Txn, provider: str, fact: MachineFact, *, is_foreign: bool = False) -> Node:
    """Give a machine that nobody stands for a record, whose only way is out.

    One that is foreign counts in no pool, and waits for an operator's word.
    """
    node = txn.put(
        Node(
            node_id=NodeId(txn.mint("n")),
            pool="" if is_foreign else fact.pool,
            tier="" if is_foreign else fact.tier,
            provider=provider,
            origin=Origin.ORPHAN,
            phase=NodePhase.STOPPING,
            phase_since_at_ms=txn.now_ms,
            created_at_ms=txn.now_ms,
            boot_ms=0,
            machine_id=fact.machine_id,
            hostname=fact.hostname,
            health_since_at_ms=txn.now_ms,
            retire_reason=RetireReason.ORPHAN,
            is_foreign=is_foreign,
        )
    )
    txn.emit(
        EventKind.ORPHAN_FOUND,
        {"node": node.node_id, "pool": fact.pool},
        machine=fact.machine_id,
        provider=provider,
        label_node=fact.node_id,
        is_foreign=is_foreign,
    )
    return node
