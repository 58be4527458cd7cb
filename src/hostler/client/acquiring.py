"""Acquiring a lease: waiting in line, and taking up what was granted."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from hostler.base.errors import HostlerError
from hostler.client import calls
from hostler.client.call import Call
from hostler.client.errors import ClientError
from hostler.client.lease import HeldLease, LeaseRefused
from hostler.client.transport import Transport
from hostler.client.wishes import OnWaiting
from hostler.wire.http import WAIT_MS_MAX, AcquireRequest, LeaseView

WAITING_TOLD_MS: Final = 500
"""How long a lease waits before somebody who wants to know is told that it does."""

LEAVING_MS_MAX: Final = 5_000
"""How long a cancelled request may take to leave the line."""


async def acquire(
    transport: Transport, asked: AcquireRequest, on_waiting: OnWaiting | None
) -> HeldLease:
    """Wait in line for a slot and return the held lease, taken up.

    One that was granted and taken back before we knew is asked for again by the same call, which is
    answered with a new lease then, on the same node if that is free.

    Raises:
        LeaseRefused: It was not granted.
    """
    first_ms = min(asked.timeout_ms, WAITING_TOLD_MS if on_waiting else WAIT_MS_MAX // 2)
    call = calls.acquire_lease(msgspec.structs.replace(asked, wait_ms=first_ms))
    at_once = calls.acquire_lease(
        msgspec.structs.replace(asked, wait_ms=0), key=call.idempotency_key
    )
    for is_last in (False, True):
        view = await _out_of_line(transport, call, at_once, on_waiting)
        if view.phase == "held" and view.is_acknowledged:
            return HeldLease(transport, view)
        if view.phase == "held":
            try:
                view = await transport.send(calls.heartbeat_lease(view.lease_id, view.epoch))
            except ClientError as error:
                if is_last or error.status != 409:
                    raise
            else:
                return HeldLease(transport, view)
        elif is_last or view.outcome != "unacknowledged":
            break
    raise LeaseRefused(
        view.reason or view.outcome or view.phase,
        "the lease was not granted",
        lease_id=view.lease_id,
        detail=view.reason_detail or view.outcome_detail,
    )


async def _out_of_line(
    transport: Transport,
    call: Call[LeaseView],
    at_once: Call[LeaseView],
    on_waiting: OnWaiting | None,
) -> LeaseView:
    view: LeaseView | None = None
    try:
        view = await transport.send(call)
        while view.phase == "waiting":
            if on_waiting is not None:
                on_waiting(view)
            view = await transport.send(calls.lease(view.lease_id, WAIT_MS_MAX // 2))
    except (asyncio.CancelledError, HostlerError) as error:
        if view is not None or isinstance(error, asyncio.CancelledError):
            await asyncio.shield(_leave_line(transport, at_once, view))
        raise
    return view


async def _leave_line(
    transport: Transport, at_once: Call[LeaseView], view: LeaseView | None
) -> None:
    """Give up a request; nobody is to hold a node that nobody knows of."""
    try:
        async with asyncio.timeout(LEAVING_MS_MAX / 1_000):
            if view is None:
                # Its answer was still to come: the same key tells which lease it is.
                view = await transport.send(at_once)
            await transport.send(calls.release_lease(view.lease_id))
    except (HostlerError, TimeoutError):
        return  # it leaves the line by itself at its deadline, and expires if it was granted
