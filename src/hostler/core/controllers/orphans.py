"""Orphans: asks every provider in use for all machines of ours, and doubts the ones it misses.

Reads:    providers, pools, nodes, settings.
Writes:   providers (who is in use, when the next list is due, who was asked about).
Sends:    ListMachines, CheckMachine.
Keeps:    INV-PROVIDER-1 (every provider that may have a machine of ours is asked for its list).
Waits on: nothing that people ask about.

What a list says is compared with our records where it is absorbed. A machine that is listed and
that no node stands for gets a record and is retired like any other, unless it bears the name of a
node that this fleet never had: then it waits for an operator's word. One that complete lists in a
row have missed is not thereby gone: its provider is asked about it by name.
"""

from __future__ import annotations

from typing import Final

from hostler.core import limits, outbox
from hostler.core.machine_commands import has_machine, send_check
from hostler.core.txn import Txn
from hostler.model import Node, Pool, ProviderState, Settings
from hostler.model.command import ListMachines

READS: Final = (ProviderState, Pool, Node, Settings)


def reconcile(txn: Txn) -> None:
    """Keep a list of every provider no older than the settings want."""
    known = txn.fleet.providers
    for pool in txn.changed(Pool):
        for tier in pool.tiers:
            _meet(txn, tier.provider)
    for node in txn.changed(Node):
        if node.provider and node.provider not in known and node.is_paid:
            _meet(txn, node.provider)
    for settings in txn.changed(Settings):
        for state in list(known.in_order()):
            _list_sooner(txn, state, settings)
    for state in txn.changed(ProviderState):
        _doubt(txn, state)
        if state.launch_next_at_ms is not None and state.launch_next_at_ms <= txn.now_ms:
            txn.change(txn.fleet.providers[state.name], launch_next_at_ms=None)
        if state.next_list_at_ms <= txn.now_ms:
            _list(txn, txn.fleet.providers[state.name])


def _meet(txn: Txn, provider: str) -> None:
    """Begin to list a provider, now."""
    if provider and provider not in txn.fleet.providers:
        _list(txn, ProviderState(name=provider, next_list_at_ms=txn.now_ms))


def _list_sooner(txn: Txn, state: ProviderState, settings: Settings) -> None:
    """Let a shorter interval hold from now on, and not only after the list that was due."""
    next_at_ms = min(state.next_list_at_ms, txn.now_ms + settings.list_every_ms)
    txn.change(state, next_list_at_ms=next_at_ms)


def _list(txn: Txn, state: ProviderState) -> None:
    settings = txn.fleet.settings
    if settings is None:
        return
    if not _is_in_use(txn, state.name):
        outbox.withdraw(txn, list_command_id(state))
        txn.remove(state)
        return
    list_count = state.list_count
    if list_command_id(state) not in txn.fleet.commands:
        list_count += 1
        state = txn.change(state, list_count=list_count)
        txn.send(list_command_id(state), ListMachines(provider=state.name))
    txn.change(state, next_list_at_ms=txn.now_ms + settings.list_every_ms)


def list_command_id(state: ProviderState) -> str:
    """Return the id of the latest command that asks for the provider's list."""
    return f"{state.name}/list/{state.list_count}"


def _is_in_use(txn: Txn, provider: str) -> bool:
    if txn.fleet.index.nodes_by_provider.count(provider):
        return True
    return any(
        tier.provider == provider for pool in txn.fleet.pools.in_order() for tier in pool.tiers
    )


def _doubt(txn: Txn, state: ProviderState) -> None:
    """Ask by name about machines that too many lists in a row have missed."""
    missed = sorted(
        machine_id
        for machine_id, count in state.absent_list_counts.items()
        if count >= limits.LISTS_WITHOUT_MACHINE and machine_id not in state.asked_about
    )
    if not missed:
        return
    txn.change(state, asked_about=(*state.asked_about, *missed))
    for machine_id in missed:
        for key in txn.fleet.index.nodes_by_machine.keys(f"{state.name}/{machine_id}"):
            node = txn.fleet.nodes[key]
            if has_machine(node):
                send_check(txn, node)
