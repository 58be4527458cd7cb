"""Outbox: commands that are committed and not yet settled, with their attempts as state.

Reads:    commands, cooldowns (of whole providers).
Writes:   commands (due to sent and back), nodes (that their launch was given up).
Sends:    every dispatch there is.
Keeps:    INV-OUTBOX-1 (nothing leaves that is not in the store).
Waits on: nothing that people ask about; a node's or machine's own reason tells.

An attempt that brings no answer within its patience counts as failed with an unknown outcome, and
the same command goes out again: ids make that harmless. A launch has no more time than its machine
has to boot: then it is given up, as is one that a pause of its provider holds back for so long.
What a final failure means for the record that the command is about is for `absorb` to write down
and for that record's controller to decide.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hostler.base.rng import Stream
from hostler.base.units import format_duration
from hostler.core import limits
from hostler.core.provider_pauses import paused_until_ms
from hostler.core.txn import Txn
from hostler.model import Node, OutboxEntry
from hostler.model.command import LaunchMachine, OutboxPhase
from hostler.model.node import LaunchFailure, NodePhase

READS: Final = (OutboxEntry,)

_FINAL_CODES = {
    "launch_machine": frozenset(
        {
            "request_invalid",
            "capacity_unavailable",
            "quota_exceeded",
            "credentials_rejected",
            "defect",
        }
    ),
    "start_allocation": frozenset({"refused"}),
    "stop_allocation": frozenset({"refused"}),
    "check_ready": frozenset({"refused"}),
    "end_lease": frozenset({"refused"}),
}
"""Failures after which the same command is not tried again. Everything else is, with back-off:
a stop must never be given up, and a list or a check is only a question."""

LAUNCH_TIMEOUT: Final = "launch_timeout"
"""Its provider has not said within the time to boot what became of a launch."""

_DOUBTFUL_CODES: Final = frozenset({"outcome_unknown", "defect", LAUNCH_TIMEOUT})
"""After these the effect may have happened."""

_NO_ANSWER: Final = ("outcome_unknown", "no answer in time")


def reconcile(txn: Txn) -> None:
    """Send what is due; take back what has been out for too long."""
    for entry in txn.changed(OutboxEntry):
        if entry.next_at_ms > txn.now_ms:
            continue
        if entry.phase is OutboxPhase.SENT:
            code, message = _NO_ANSWER
            if is_final(entry, code, txn.now_ms):
                launch_given_up(txn, entry, code, message)
            else:
                failed_once(txn, entry, code, message, None)
            continue
        if isinstance(entry.command, LaunchMachine):
            paused_ms = paused_until_ms(txn.fleet, entry.command.provider)
            if paused_ms is not None and paused_ms > txn.now_ms:
                _held_back(txn, entry, entry.command, paused_ms)
                continue
        sent = txn.put(
            replace(
                entry,
                phase=OutboxPhase.SENT,
                attempt_count=entry.attempt_count + 1,
                next_at_ms=txn.now_ms
                + limits.patience_ms(entry.command, txn.now_ms - entry.created_at_ms),
            )
        )
        txn.dispatch(sent)


def _held_back(txn: Txn, entry: OutboxEntry, launch: LaunchMachine, paused_ms: int) -> None:
    """Let a launch wait until its provider's pause is over, unless its node has no time for it."""
    until_at_ms = entry.created_at_ms + launch.boot_ms
    if until_at_ms <= txn.now_ms:
        code = entry.last_code or LAUNCH_TIMEOUT
        launch_given_up(txn, entry, code, entry.last_message or "its provider is paused")
        return
    txn.put(replace(entry, next_at_ms=min(until_at_ms, paused_ms + _spread_ms(entry))))


def _spread_ms(entry: OutboxEntry) -> int:
    """Return how much later than others this one goes on after a pause."""
    return Stream(0, "after_pause", entry.command_id).below(limits.PROVIDER_PAUSE_MS_MIN)


def tag_of(entry: OutboxEntry) -> str:
    """Return the command's name, such as `launch_machine`."""
    return str(type(entry.command).__struct_config__.tag)


def is_final(entry: OutboxEntry, code: str, now_ms: int) -> bool:
    """Say whether this failure ends the command, given the attempts so far and its age."""
    if code in _FINAL_CODES.get(tag_of(entry), frozenset()):
        return True
    launch = entry.command
    return isinstance(launch, LaunchMachine) and (
        entry.attempt_count >= limits.LAUNCH_ATTEMPTS_MAX
        or entry.created_at_ms + launch.boot_ms <= now_ms
    )


def launch_given_up(txn: Txn, entry: OutboxEntry, code: str, message: str) -> None:
    """Take a launch back for good, and leave its node with the last word about it."""
    txn.remove(entry)
    if code == "outcome_unknown":
        waited = format_duration(txn.now_ms - entry.created_at_ms)
        code, message = LAUNCH_TIMEOUT, f"its launch is not answered after {waited}: {message}"
    node = txn.fleet.nodes.get(entry.command.node_id)  # type: ignore[union-attr]  # a launch has one
    if node is not None and node.phase is NodePhase.STOPPING:
        txn.touch(Node.KIND, node.node_id)  # its machine was not stopped while this was out
    if node is not None and node.phase is NodePhase.REQUESTED:
        failure = LaunchFailure(
            code=code,
            message=message[:500],
            is_certain=not entry.is_doubtful and code not in _DOUBTFUL_CODES,
        )
        txn.change(node, launch_failure=failure)


def failed_once(
    txn: Txn, entry: OutboxEntry, code: str, message: str, retry_after_ms: int | None
) -> OutboxEntry:
    """Record a failed attempt and when the next one may go."""
    next_at_ms = txn.now_ms + backoff_ms(entry.attempt_count, retry_after_ms)
    if isinstance(entry.command, LaunchMachine):
        # A node that is no longer wanted goes as soon as no attempt is out.
        txn.touch(Node.KIND, entry.command.node_id)
        next_at_ms = min(next_at_ms, entry.created_at_ms + entry.command.boot_ms)
    return txn.put(
        replace(
            entry,
            phase=OutboxPhase.DUE,
            next_at_ms=next_at_ms,
            is_doubtful=entry.is_doubtful or code in _DOUBTFUL_CODES,
            last_code=code,
            last_message=message[:500],
        )
    )


def backoff_ms(attempt_count: int, retry_after_ms: int | None) -> int:
    """Return the pause after so many attempts: doubling, to a ceiling, never below what was asked.

    No jitter: attempts at different commands start at different instants, and a journal replays.
    """
    doubled = limits.OUTBOX_BACKOFF_MS_MIN << min(max(attempt_count - 1, 0), 16)
    return max(min(doubled, limits.OUTBOX_BACKOFF_MS_MAX), retry_after_ms or 0)


def make_due(txn: Txn, bucket: str) -> None:
    """Make every command of a target go out again now, because the target has just come back."""
    for key in txn.fleet.index.commands_by_target.keys(bucket):
        entry = txn.fleet.commands[key]
        txn.put(_as_due(entry, txn.now_ms))


def make_all_due(txn: Txn) -> None:
    """Make every command go out again now, because nothing is known of what was out."""
    for entry in list(txn.fleet.commands.in_order()):
        txn.put(_as_due(entry, txn.now_ms))


def _as_due(entry: OutboxEntry, now_ms: int) -> OutboxEntry:
    """Return the command to be sent now; an attempt that was out may have had its effect."""
    return replace(
        entry,
        phase=OutboxPhase.DUE,
        next_at_ms=now_ms,
        is_doubtful=entry.is_doubtful or entry.phase is OutboxPhase.SENT,
    )


def withdraw(txn: Txn, command_id: str) -> None:
    """Take a command back that is no longer wanted; its late outcome will be ignored."""
    entry = txn.fleet.commands.get(command_id)
    if entry is not None:
        txn.remove(entry)
