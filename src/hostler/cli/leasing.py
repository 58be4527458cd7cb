"""Acquiring leases for `hostler lease`."""

from __future__ import annotations

import asyncio
import signal

from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import OutputFormat, say_data
from hostler.cli.remote import Remote
from hostler.cli.running import acquire
from hostler.cli.terminal import note, say
from hostler.wire.http import AcquireRequest, LeaseView


async def acquire_lease(remote: Remote, asked: AcquireRequest) -> LeaseView:
    """Wait in line and return the lease, which outlives us. Ctrl-C leaves the line."""
    await remote.first_contact()
    async with remote.async_client() as client:
        held = await acquire(client, asked)
        return held.view


def say_plan(remote: Remote, asked: AcquireRequest, output: OutputFormat) -> int:
    """Say what would become of a request; return the exit code: 1 unless it would get a node."""
    plan = remote.client.plan_lease(asked)
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data(plan, output)
    elif plan.phase == "held":
        say(f"it would be held on {plan.node_id}")
    else:
        place = "" if plan.position is None else f", {plan.position} before it"
        grows = f", {plan.launch_count} machines launched for it" if plan.launch_count else ""
        say(f"it would be {plan.phase}{place}{grows}: {plan.code} ({plan.detail})")
    return ExitCode.OK if plan.can_acquire else ExitCode.FAILED


async def hold_lease(remote: Remote, asked: AcquireRequest) -> None:
    """Hold a lease until a signal comes, then release it.

    Raises:
        CommandError: It was taken away meanwhile.
    """
    stop = asyncio.Event()
    await remote.first_contact()
    async with remote.async_client() as client:
        held = await acquire(client, asked)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        say(f"lease/{held.lease_id} held on {held.node_id}")
        note("Ctrl-C releases it")
        lost = asyncio.create_task(_until_lost(remote, held.lease_id))
        waiting = asyncio.create_task(stop.wait())
        await asyncio.wait((lost, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if lost.done():
            raise CommandError(f"lease {held.lease_id} was lost: {lost.result()}")
        lost.cancel()
        settled = await held.release()
        say(f"lease/{held.lease_id} released ({settled.outcome})")


async def _until_lost(remote: Remote, lease_id: str) -> str:
    """Return how the lease ended, once it does without us."""
    async with remote.async_client() as client:
        async for event in client.events(about=lease_id, kinds=["lease_settled"], tail=1):
            return str(event.data.get("outcome") or "settled")
    return "settled"
