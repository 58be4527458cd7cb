"""Provisioning: launches the machine behind each node that was asked for, and judges failures.

Reads:    nodes, cooldowns.
Writes:   nodes (REQUESTED to RETIRED or STOPPING; why a boot failed), cooldowns, breakers (boots
          that failed in a row), allocations (that waited for a machine which never came).
Sends:    LaunchMachine, CheckMachine (of a machine that boots).
Keeps:    INV-NODE-6 (a node that is asked for has its launch in the outbox).
Waits on: Reason.BOOTING, Reason.OFFER_COOLING_DOWN.

Whether a failed launch left a machine is never guessed: where it is not certain that there is
none, the node goes the way of every machine, through a stop that asks the provider by label.
"""

from __future__ import annotations

from typing import Final

from hostler.base.units import format_duration
from hostler.core import boots, holds, limits, outbox
from hostler.core.events import EventKind
from hostler.core.machine_commands import launch_command_id, send_check, send_launch
from hostler.core.provider_pauses import pause_key
from hostler.core.readiness import booted_by_at_ms
from hostler.core.txn import Txn
from hostler.core.uses import offer_key
from hostler.model import Cooldown, Node, OutboxEntry
from hostler.model.allocation import EndCause, Ended
from hostler.model.command import OutboxPhase
from hostler.model.node import LaunchFailure, NodePhase, NodeTrigger, Origin, RetireReason
from hostler.model.reason import Reason

READS: Final = (Node, Cooldown)

_HOPELESS_CODES: Final = frozenset({"credentials_rejected", "request_invalid"})
"""Trying again soon cannot help: somebody has to change something, and clears the pause by it."""


def reconcile(txn: Txn) -> None:
    """Launch, give up, and keep count of what keeps failing."""
    for cooldown in txn.changed(Cooldown):
        if not cooldown.is_over and cooldown.until_at_ms <= txn.now_ms:
            txn.change(cooldown, is_over=True)
    for node in txn.changed(Node):
        if node.machine_id is None and node.origin is Origin.LAUNCHED:
            _ask_no_more(txn, node)
        match node.phase:
            case NodePhase.REQUESTED:
                _requested(txn, node)
            case NodePhase.STARTING:
                _starting(txn, node)
            case NodePhase.READY if len(txn.fleet.cooldowns) or len(txn.fleet.breakers):
                _came(txn, node)
            case _:
                pass


def _ask_no_more(txn: Txn, node: Node) -> None:
    """Take a launch back that would be tried again although its machine is there, or was.

    A provider that has forgotten the first attempt would make a second machine. What the first one
    brought is told by a list.
    """
    if node.phase is not NodePhase.REQUESTED:
        entry = txn.fleet.commands.get(launch_command_id(node))
        if entry is not None and entry.phase is OutboxPhase.DUE:
            txn.remove(entry)


def _requested(txn: Txn, node: Node) -> None:
    if node.launch_failure is not None:
        _failed(txn, node, node.launch_failure)
        return
    entry = txn.fleet.commands.get(launch_command_id(node))
    if node.replace_reason is not None and entry is not None and entry.phase is OutboxPhase.DUE:
        # It failed as it was configured then; what waits for it is planned anew (trial B100).
        node = txn.change(node, retire_reason=node.retire_reason or node.replace_reason)
    if node.retire_reason is not None:
        _give_up(txn, node)
        return
    send_launch(txn, node)


def _failed(txn: Txn, node: Node, failure: LaunchFailure) -> None:
    """Act on the last word about a launch."""
    txn.emit(
        EventKind.NODE_LAUNCH_FAILED,
        {"node": node.node_id, "pool": node.pool},
        tier=node.tier,
        offer=node.offer,
        code=failure.code,
        message=failure.message,
        is_certain=failure.is_certain,
    )
    _cool_down(txn, node, failure.code, failure.message)
    if failure.code == outbox.LAUNCH_TIMEOUT:
        boots.failed(txn, node, failure.code, failure.message)  # each may have made a machine
    _leave(txn, node, is_machine_possible=not failure.is_certain)


def _give_up(txn: Txn, node: Node) -> None:
    """Let go of a node that is no longer wanted, as soon as no attempt to launch it is out."""
    entry: OutboxEntry | None = txn.fleet.commands.get(launch_command_id(node))
    if entry is not None and entry.phase is OutboxPhase.SENT:
        txn.note(node.node_id, Reason.BOOTING, "its launch is out; it is stopped when it answers")
        return
    outbox.withdraw(txn, launch_command_id(node))
    _leave(txn, node, is_machine_possible=entry is not None and entry.is_doubtful)


def _leave(txn: Txn, node: Node, *, is_machine_possible: bool) -> None:
    """End the node here, or send it to retirement."""
    for key in txn.fleet.index.allocations_by_node.keys(node.node_id):
        ended = Ended(cause=EndCause.LAUNCH_FAILED, message=f"{node.node_id} never came")
        holds.end_allocation(txn, txn.fleet.allocations[key], ended)
    txn.clear_note(node.node_id)
    node = txn.change(
        txn.fleet.nodes[node.node_id],
        retire_reason=node.retire_reason or RetireReason.BOOT_FAILED,
        is_spare=False,
        spare_band=None,
    )
    if is_machine_possible:
        txn.move(node, NodeTrigger.STOP_STARTED)
        return
    txn.move(node, NodeTrigger.LAUNCH_FAILED)
    txn.emit(
        EventKind.NODE_RETIRED,
        {"node": node.node_id, "pool": node.pool},
        retire_reason=node.retire_reason.value if node.retire_reason else "",
        machine=None,
    )


def _starting(txn: Txn, node: Node) -> None:
    """Give up a machine whose agent did not come in time, or that vanished before it could."""
    if node.is_machine_gone:
        code, message = "machine_gone", "the machine ended before its agent said hello"
    elif node.retire_reason is None and booted_by_at_ms(txn.fleet, node) <= txn.now_ms:
        code, message = _why_late(txn, node)
    else:
        _look_after(txn, node)
        return
    txn.emit(
        EventKind.NODE_LAUNCH_FAILED,
        {"node": node.node_id, "pool": node.pool},
        tier=node.tier,
        offer=node.offer,
        code=code,
        message=message,
        is_certain=False,
    )
    if node.origin is Origin.LAUNCHED:
        _cool_down(txn, node, code, message)
        boots.failed(txn, node, code, message)
    txn.change(
        node,
        retire_reason=node.retire_reason or RetireReason.BOOT_FAILED,
        launch_failure=LaunchFailure(code=code, message=message, is_certain=False),
    )


def _why_late(txn: Txn, node: Node) -> tuple[str, str]:
    """Say what a machine whose time to boot is over has not done."""
    state = node.readiness
    if state is None:
        return "boot_timeout", f"no hello from its agent within {format_duration(node.boot_ms)}"
    waited = format_duration(txn.now_ms - state.since_at_ms)
    told = f"its ready check has not passed within {waited}, in {state.try_count} tries"
    return "never_ready", f"{told}: {state.detail or 'no try has had a result'}"


def _look_after(txn: Txn, node: Node) -> None:
    """Ask now and then whether a machine that boots still exists (trial Q08)."""
    seen_at_ms = node.checked_at_ms or node.phase_since_at_ms
    if node.retire_reason is None and seen_at_ms + limits.BOOT_CHECK_MS <= txn.now_ms:
        send_check(txn, txn.change(node, checked_at_ms=txn.now_ms))


def _cool_down(txn: Txn, node: Node, code: str, message: str) -> None:
    """Leave the offer alone for a while, for longer each time in a row."""
    key = offer_key(node.pool, node.tier, node.offer)
    before = txn.fleet.cooldowns.get(key)
    if before is not None and not before.is_over and before.failed_at_ms == txn.now_ms:
        return  # several launches failed together: that is one failure
    failure_count = 1 if before is None else before.failure_count + 1
    pause_ms = limits.COOLDOWN_MS_MIN << min(failure_count - 1, 16)
    if code in _HOPELESS_CODES:
        pause_ms = limits.COOLDOWN_MS_MAX
    txn.put(
        Cooldown(
            cooldown_id=key,
            failure_count=failure_count,
            failed_at_ms=txn.now_ms,
            until_at_ms=txn.now_ms + min(pause_ms, limits.COOLDOWN_MS_MAX),
            code=code,
            message=message,
        )
    )


def _came(txn: Txn, node: Node) -> None:
    """Forget failures of an offer, its tier and its provider, which has brought a node since."""
    if node.origin is not Origin.LAUNCHED:
        return
    boots.came(txn, node)
    pause = txn.fleet.cooldowns.get(pause_key(node.provider))
    if pause is not None and node.phase_since_at_ms > pause.failed_at_ms:
        txn.remove(pause)
    cooldown = txn.fleet.cooldowns.get(offer_key(node.pool, node.tier, node.offer))
    if (
        cooldown is not None
        and node.phase_since_at_ms > cooldown.failed_at_ms
        and cooldown.code != "interrupted"  # that one boots says nothing of how long it is ours
    ):
        txn.remove(cooldown)
