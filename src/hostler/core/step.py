"""One step: absorb a batch of inputs, then reconcile until nothing is left to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hostler.base.errors import Defect
from hostler.core.absorb import absorb
from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyInput, SubmitBundle
from hostler.core.limits import ROUNDS_MAX
from hostler.core.order import CONTROLLERS, READERS
from hostler.core.protection import aside, hurt_texts, protection_of
from hostler.core.replies import Problem, Refused
from hostler.core.txn import Txn


def step(
    fleet: Fleet,
    inputs: Sequence[AnyInput],
    now_ms: int,
    amend: Callable[[Txn], None] | None = None,
) -> Delta:
    """Decide what follows from a batch of inputs.

    The fleet is ahead of the store when this returns. The caller makes the delta durable and then
    calls `fleet.keep(delta)`, or calls `fleet.drop(delta)`; until then no other step may begin and
    nobody may read.

    Args:
        fleet: The fleet, with no step open.
        inputs: What happened, in order.
        now_ms: Milliseconds since 1970 UTC; an earlier instant than the last step's counts as that.
        amend: Makes facts different before anything is decided; for steps that are only a question.

    Returns:
        Changes, events, dispatches, replies, and when to call again at the latest.

    Raises:
        Defect: An invariant of ours does not hold; the fleet is as it was before.
    """
    return _step(fleet, inputs, now_ms, amend, is_trial=False)


def _step(
    fleet: Fleet,
    inputs: Sequence[AnyInput],
    now_ms: int,
    amend: Callable[[Txn], None] | None = None,
    *,
    is_trial: bool,
) -> Delta:
    txn = Txn(fleet, now_ms, READERS)
    try:
        for one in inputs:
            if isinstance(one, SubmitBundle) and one.is_protection_required and not is_trial:
                refusal = _unprotected(fleet, one, now_ms)
                if refusal is not None:
                    txn.reply(one.request_id, refusal)
                    continue
            absorb(txn, one)
        if amend is not None:
            amend(txn)
        txn.fire_timers()
        _reconcile(txn)
        return txn.close()
    except BaseException:
        txn.abandon()
        raise


def _unprotected(fleet: Fleet, one: SubmitBundle, now_ms: int) -> Refused | None:
    """Refuse a bundle that asks to be protected and would not be, once it had its places."""
    with aside(fleet):
        delta = _step(fleet, [one], now_ms, is_trial=True)
        try:
            (result,) = (r.result for r in delta.replies if r.request_id == one.request_id)
            if isinstance(result, Refused) or result.is_repeat:
                return None  # absorbing it says the same, or changes nothing
            protection = protection_of(fleet, one.bundle_id, now_ms)
        finally:
            fleet.drop(delta)
    if protection.is_protected:
        return None
    problems = [
        Problem(path="require_protected", code="not_protected", message=text)
        for text in hurt_texts(protection)
    ]
    message = f"{problems[0].message} (of {len(problems)} such losses)"
    return Refused(
        code="not_protected", message=message, problems=tuple(problems), is_conflict=True
    )


def _reconcile(txn: Txn) -> None:
    for _ in range(ROUNDS_MAX):
        if not txn.pending:
            return
        for controller in CONTROLLERS:
            if txn.pending & controller.bit:
                txn.enter(controller.name)
                controller.reconcile(txn)
                txn.leave(controller.bit)
    raise Defect("no_fixed_point", "controllers keep undoing each other", round_count=ROUNDS_MAX)
