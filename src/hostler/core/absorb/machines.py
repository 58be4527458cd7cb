"""What providers say of machines: launched, gone, listed, missing from a list.

A machine that carries our fleet's label and that no node stands for is somebody's bill, so it gets
a record at once, whose only way is out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hostler.base.ids import NodeId
from hostler.core import outbox
from hostler.core.absorb import notices
from hostler.core.events import EventKind
from hostler.core.machine_commands import has_machine, launch_command_id
from hostler.core.machine_fact import MachineFact
from hostler.core.txn import Txn
from hostler.model import Node
from hostler.model.command import CheckMachine
from hostler.model.node import NodePhase, NodeTrigger, Origin, RetireReason


def launched(txn: Txn, node_id: NodeId, fact: MachineFact) -> None:
    """Write down which machine stands behind a node."""
    node = txn.fleet.nodes.get(node_id)
    if node is None or node.phase is NodePhase.RETIRED:
        came_late(txn, node_id, fact)
        return
    known = {
        "machine_id": fact.machine_id,
        "hostname": fact.hostname or node.hostname,
        "started_at_ms": began_at_ms(txn, fact),
    }
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


def met(txn: Txn, node_id: NodeId, fact: MachineFact) -> None:
    """Write down which machine a node has that was stopped before its launch was answered."""
    node = txn.fleet.nodes.get(node_id)
    if node is not None and node.machine_id is None and node.phase is NodePhase.STOPPING:
        launched(txn, node_id, fact)


def came_late(txn: Txn, node_id: str, fact: MachineFact) -> None:
    """Look after a machine whose launch had been given up."""
    node = txn.fleet.nodes.get(node_id)
    if node is not None and node.phase is not NodePhase.RETIRED:
        if node.machine_id is None:
            launched(txn, node.node_id, fact)
        elif node.machine_id != fact.machine_id:
            _adopt_once(txn, node.provider, fact)
        else:
            _learn_start(txn, node, fact)
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


def _learn_start(txn: Txn, node: Node, fact: MachineFact) -> None:
    """Take a provider's word of since when a machine costs, where only its creation was known.

    A list that was made between the two names a machine that has not begun yet.
    """
    if fact.started_at_ms is not None and node.started_at_ms == fact.created_at_ms:
        txn.change(node, started_at_ms=began_at_ms(txn, fact))


def noticed(txn: Txn, provider: str, fact: MachineFact) -> None:
    """Take in that a provider is about to take a machine back."""
    if fact.notice is None:
        return
    for key in txn.fleet.index.nodes_by_machine.keys(f"{provider}/{fact.machine_id}"):
        notices.told(txn, txn.fleet.nodes[key], fact.notice, fact.ends_at_ms, "provider")


def _provider_of(txn: Txn, fact: MachineFact) -> str:
    pool = txn.fleet.pools.get(fact.pool)
    tier = None if pool is None else pool.tier(fact.tier)
    return "" if tier is None else tier.provider


def is_gone(txn: Txn, node_id: NodeId, ended_at_ms: int | None = None) -> None:
    """Write down the provider's word that a node's machine no longer exists, and since when."""
    node = txn.fleet.nodes.get(node_id)
    if node is not None and node.phase is not NodePhase.RETIRED:
        txn.change(node, is_machine_gone=True, ended_at_ms=ended_at_ms)


def began_at_ms(txn: Txn, fact: MachineFact) -> int:
    """Return since when a machine costs, by its provider's word where that can be."""
    told_at_ms = fact.created_at_ms if fact.started_at_ms is None else fact.started_at_ms
    return min(told_at_ms, txn.now_ms) if told_at_ms > 0 else txn.now_ms


def checked(
    txn: Txn, command: CheckMachine, facts: Sequence[MachineFact], ended_at_ms: int | None
) -> None:
    """Write down what a provider says when it is asked about one machine."""
    if not facts:
        is_gone(txn, command.node_id, ended_at_ms)
    for fact in facts:
        noticed(txn, command.provider, fact)


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
    unattributed_ms = 0
    for fact in facts:
        present.add(fact.machine_id)
        unattributed_ms += _unattributed_ms(txn, provider, fact)
        _seen(txn, provider, fact)
    counts = {}
    since = {}
    for key in txn.fleet.index.nodes_by_provider.keys(provider):
        node = txn.fleet.nodes[key]
        machine_id = node.machine_id
        if machine_id is None or node.origin is Origin.JOINED or not has_machine(node):
            continue
        if machine_id not in present and node.phase_since_at_ms < asked_at_ms:
            counts[str(machine_id)] = state.absent_list_counts.get(machine_id, 0) + 1
            since[str(machine_id)] = state.absent_since_at_ms.get(
                machine_id, max(state.listed_at_ms or 0, node.started_at_ms or 0)
            )
    unattributed_ms += sum(txn.now_ms - at_ms for at_ms in since.values())
    txn.change(
        state,
        listed_at_ms=txn.now_ms,
        absent_list_counts=counts,
        asked_about=(),
        absent_since_at_ms=since,
        unattributed_ms=unattributed_ms,
    )
    if unattributed_ms > state.unattributed_ms:
        txn.emit(
            EventKind.SPEND_UNATTRIBUTED,
            {"provider": provider},
            seconds=unattributed_ms // 1_000,
            machines_missed=len(since),
        )


def _unattributed_ms(txn: Txn, provider: str, fact: MachineFact) -> int:
    """Return for how long a listed machine has cost without anybody's counting it."""
    began_ms = began_at_ms(txn, fact)
    for key in txn.fleet.index.nodes_by_machine.keys(f"{provider}/{fact.machine_id}"):
        known = txn.fleet.nodes[key]
        if known.phase is not NodePhase.RETIRED:
            return 0
        began_ms = max(began_ms, known.metered_until_ms or began_ms)
    node = txn.fleet.nodes.get(fact.node_id)
    if node is not None and node.machine_id is None and node.phase is not NodePhase.RETIRED:
        return 0  # its launch is about to be answered
    return txn.now_ms - began_ms


def _seen(txn: Txn, provider: str, fact: MachineFact) -> None:
    """Match one listed machine with its node, or adopt it as an orphan once it is old enough."""
    fleet = txn.fleet
    if _is_known(txn, provider, fact):
        noticed(txn, provider, fact)
        for key in fleet.index.nodes_by_machine.keys(f"{provider}/{fact.machine_id}"):
            if fleet.nodes[key].phase is not NodePhase.RETIRED:
                _learn_start(txn, fleet.nodes[key], fact)
        return
    node = fleet.nodes.get(fact.node_id)
    if node is not None and node.phase is not NodePhase.RETIRED and node.machine_id is None:
        outbox.withdraw(txn, launch_command_id(node))
        launched(txn, node.node_id, fact)
        return
    grace_ms = 0 if fleet.settings is None else fleet.settings.orphan_grace_ms
    ended_at_ms = _ended_at_ms(txn, provider, fact)
    if ended_at_ms is not None:
        # Its provider has said by name that it is gone; a list may still have it for a while.
        is_due = ended_at_ms + grace_ms <= txn.now_ms
    else:
        is_retired = node is not None and node.phase is NodePhase.RETIRED
        is_due = is_retired or fact.created_at_ms + grace_ms <= txn.now_ms
    if is_due:
        adopt_orphan(txn, provider, fact, is_foreign=not _was_ours(txn, fact.node_id))


def _was_ours(txn: Txn, node_id: str | None) -> bool:
    """Say whether the fleet has ever had a node of that name, as far as its records go back."""
    if node_id is None or node_id in txn.fleet.nodes:
        return node_id is not None
    prefix, _, number = node_id.partition("-")
    counter = txn.fleet.counters.get(prefix)
    if prefix != "n" or not number.isdigit() or counter is None:
        return False
    # What another server has named since the backup that we come from is not ours either.
    is_in_gap = any(above < int(number) <= upto for above, upto in counter.gaps)
    return int(number) <= counter.value and not is_in_gap


def _ended_at_ms(txn: Txn, provider: str, fact: MachineFact) -> int | None:
    """Return when the last node that stood for a machine was retired, if any is remembered."""
    keys = txn.fleet.index.nodes_by_machine.keys(f"{provider}/{fact.machine_id}")
    return max((txn.fleet.nodes[key].phase_since_at_ms for key in keys), default=None)


def _unbilled_from_ms(txn: Txn, former: Node | None, fact: MachineFact) -> int:
    """Return since when an orphan costs, so that what its former record has billed is not again."""
    began_ms = began_at_ms(txn, fact)
    if former is None or former.machine_id not in (None, fact.machine_id):
        return began_ms
    if former.metered_from_ms is None or former.metered_until_ms is None:
        return began_ms
    return min(began_ms + former.metered_until_ms - former.metered_from_ms, txn.now_ms)


def adopt_orphan(txn: Txn, provider: str, fact: MachineFact, *, is_foreign: bool = False) -> Node:
    """Give a machine that nobody stands for a record, whose only way is out.

    One that is foreign counts in no pool, and waits for an operator's word.
    """
    former = txn.fleet.nodes.get(fact.node_id)
    node = txn.put(
        Node(
            node_id=NodeId(txn.mint("n")),
            pool="" if is_foreign else fact.pool,
            tier="" if is_foreign else fact.tier,
            provider=provider,
            offer="" if former is None else former.offer,
            price_microusd_per_hour=0 if former is None else former.price_microusd_per_hour,
            started_at_ms=_unbilled_from_ms(txn, former, fact),
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
