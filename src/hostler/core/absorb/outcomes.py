"""How commands ended: each outcome is written onto the record that its command was about.

A failure that is not final only moves the next attempt; a final one is for that record's
controller to act upon. A success is always believed, however late it comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from hostler.base.redact import tail_of
from hostler.core import holds, limits, outbox
from hostler.core.absorb import machines, readiness
from hostler.core.inputs import CommandFailed, CommandSettled, Succeeded
from hostler.core.machine_fact import MachineFact
from hostler.core.provider_pauses import PAUSING_CODES, pause
from hostler.core.txn import Txn
from hostler.model import Allocation, OutboxEntry
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.command import (
    AssignRole,
    CheckMachine,
    CheckReady,
    Command,
    ConfigureAllocation,
    EndLease,
    LaunchMachine,
    ListMachines,
    OutboxPhase,
    StartAllocation,
    StopAllocation,
    StopMachine,
)


def settled(txn: Txn, one: CommandSettled) -> None:
    """Write down how one attempt at a command ended."""
    entry = txn.fleet.commands.get(one.command_id)
    if entry is None:
        _late(txn, one)
        return
    if one.outcome.boot_log:
        _logged(txn, entry, one.outcome.boot_log)
        entry = txn.fleet.commands[one.command_id]
    match one.outcome:
        case Succeeded():
            _succeeded(txn, entry, one.outcome)
        case CommandFailed():
            _failed(txn, entry, one.outcome)
        case _:
            assert_never(one.outcome)


def _logged(txn: Txn, entry: OutboxEntry, boot_log: str) -> None:
    """Keep what a machine wrote that did not boot; the first that is told is the fullest."""
    command = entry.command
    if not isinstance(command, StopMachine | CheckMachine):
        return
    node = txn.fleet.nodes.get(command.node_id)
    if node is not None and not node.boot_log:
        txn.change(node, boot_log=tail_of(boot_log, limits.BOOT_LOG_CHARS_MAX))
    txn.change(entry, command=replace(command, is_boot_log_wanted=False))


def _late(txn: Txn, one: CommandSettled) -> None:
    """Look after what a command brought that nobody waits for any more.

    Everything but a launch either changed nothing or is asked for again; a launch left a machine.
    """
    node_id, _, rest = one.command_id.partition("/")
    if rest.startswith("launch/") and isinstance(one.outcome, Succeeded):
        for fact in one.outcome.machines:
            machines.came_late(txn, node_id, fact)


def _succeeded(txn: Txn, entry: OutboxEntry, outcome: Succeeded) -> None:
    if _is_to_go_on(txn, entry, outcome):
        return
    command, facts = entry.command, outcome.machines
    txn.remove(entry)
    match command:
        case LaunchMachine():
            machines.launched(txn, command.node_id, facts[0])
        case StopMachine():
            machines.is_gone(txn, command.node_id, outcome.ended_at_ms)
        case CheckMachine():
            machines.checked(txn, command, facts, outcome.ended_at_ms)
        case ListMachines():
            machines.listed(txn, command.provider, entry.created_at_ms, facts)
        case StartAllocation() | ConfigureAllocation() | AssignRole():
            _obeyed(txn, command)
        case StopAllocation():
            _stopped(txn, command)
        case EndLease():
            holds.cleaned(txn, command, None)
        case CheckReady():
            readiness.answered(txn, command, None)
        case _:
            assert_never(command)


def _is_to_go_on(txn: Txn, entry: OutboxEntry, outcome: Succeeded) -> bool:
    """Have a command tried again of which the answer does not say all; return whether it is."""
    command = entry.command
    if isinstance(command, LaunchMachine) and not outcome.machines:
        _failed(txn, entry, CommandFailed(code="defect", message="no machine was named"))
        return True
    if not isinstance(command, StopMachine) or command.machine_id or outcome.ended_at_ms:
        return False
    node = txn.fleet.nodes.get(command.node_id)
    if node is None or node.machine_id in (None, *command.met_machine_ids):
        return False
    # It was learnt while the stop was out by its label, under which it may not be listed: by its
    # id is surer, and tells when it ended.
    entry = txn.put(replace(entry, command=replace(command, machine_id=node.machine_id)))
    outbox.failed_once(txn, entry, "outcome_unknown", "now it is known by its id", None)
    return True


def _obeyed(txn: Txn, command: StartAllocation | ConfigureAllocation | AssignRole) -> None:
    """Remember how far an allocation's agent is, and will be after a crash of its own."""
    allocation = _of(txn.fleet.allocations.get(command.allocation_id), command.epoch)
    if allocation is None:
        return
    match command:
        case StartAllocation():
            if allocation.started_at_ms is None:
                txn.change(allocation, started_at_ms=txn.now_ms)
        case ConfigureAllocation():
            written = max(allocation.config_written, allocation.config_sent)
            txn.change(allocation, config_written=written)
        case AssignRole():
            txn.change(allocation, role_known=max(allocation.role_known, command.term))
        case _:
            assert_never(command)


def _failed(txn: Txn, entry: OutboxEntry, outcome: CommandFailed) -> None:
    entry = _met(txn, entry, outcome.machines)
    if entry.phase is OutboxPhase.DUE:
        return  # its attempt was counted as failed when its patience ended
    if isinstance(entry.command, LaunchMachine) and outcome.code in PAUSING_CODES:
        provider = entry.command.provider
        pause(txn, provider, outcome.code, outcome.message, outcome.retry_after_ms)
    if not outbox.is_final(entry, outcome.code, txn.now_ms):
        outbox.failed_once(txn, entry, outcome.code, outcome.message, outcome.retry_after_ms)
        return
    command = entry.command
    if isinstance(command, LaunchMachine):
        outbox.launch_given_up(txn, entry, outcome.code, outcome.message)
        return
    txn.remove(entry)
    _refused(txn, command, outcome.message)


def _refused(txn: Txn, command: Command, message: str) -> None:
    """Write down what it means that a command is not done, for good."""
    match command:
        case StartAllocation():
            allocation = _of(txn.fleet.allocations.get(command.allocation_id), command.epoch)
            if allocation is not None:
                ended = Ended(cause=EndCause.REJECTED, message=message)
                holds.end_allocation(txn, allocation, ended)
        case StopAllocation():
            _stopped(txn, command)  # its agent knows a later grant only, so this one is over
        case EndLease():
            holds.cleaned(txn, command, message)
        case CheckReady():
            readiness.answered(txn, command, message)
        case _:
            pass  # asked again, or of no consequence


def _met(txn: Txn, entry: OutboxEntry, facts: Sequence[MachineFact]) -> OutboxEntry:
    """Remember which machines a stop by label has met: they are what is billed."""
    command = entry.command
    if not isinstance(command, StopMachine) or not facts:
        return entry
    for fact in facts:
        machines.met(txn, command.node_id, fact)
    met = dict.fromkeys((*command.met_machine_ids, *(fact.machine_id for fact in facts)))
    return txn.change(entry, command=replace(command, met_machine_ids=tuple(met)))


def _stopped(txn: Txn, command: StopAllocation) -> None:
    """End an allocation whose agent has said that nothing of it runs."""
    allocation = _of(txn.fleet.allocations.get(command.allocation_id), command.epoch)
    if allocation is not None and allocation.phase is AllocationPhase.STOPPING:
        ended = Ended(cause=EndCause.STOPPED, message=command.reason)
        holds.end_allocation(txn, allocation, ended)


def _of(allocation: Allocation | None, epoch: int) -> Allocation | None:
    """Return the allocation if it is live and the command was about this grant of it."""
    if allocation is None or not allocation.is_live or allocation.epoch != epoch:
        return None
    return allocation
