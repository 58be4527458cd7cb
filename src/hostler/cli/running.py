"""Running a command under a lease: output, input and signals between this terminal and the node."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Self

import msgspec

from hostler.base.errors import HostlerError
from hostler.base.units import duration_ms
from hostler.cli.errors import CommandError, ExitCode, report
from hostler.cli.kinds import not_found
from hostler.cli.remote import Remote
from hostler.cli.terminal import note
from hostler.client import Client, ClientError, HeldLease, RunningCommand
from hostler.wire.http import AcquireRequest, LeaseView

INPUT_BYTES: Final = 32 * 1024
"""Read at once of standard input."""

RUN_LEASE_MS: Final = 30_000
"""How long a killed `hostler run` holds its node at most. Three heartbeats fit in, so two may be
lost; and after a restart of the server every holder has the whole time again."""

RUN_ACK_MS: Final = 10_000
"""How soon we take a granted lease up. One that was granted to a killed `hostler run` is taken back
then, and its node is as good as before."""

FORWARDED_COUNT_MAX: Final = 2
"""Interrupts that go to the command; one more gives up waiting for it, which kills it."""


@dataclass(frozen=True)
class RunOptions:
    """What to run, and where.

    Attributes:
        asked: The lease to acquire; `None` uses `lease_id`.
        has_stdin: Pass standard input on.
        copies_in: What to copy to the node before, and as what.
        copies_out: What to copy from the node afterwards, and as what.
    """

    argv: Sequence[str]
    asked: AcquireRequest | None
    lease_id: str
    env: dict[str, str]
    cwd: str | None
    has_stdin: bool
    copies_in: Sequence[tuple[Path, str]]
    copies_out: Sequence[tuple[str, Path]]

    @classmethod
    def read(  # noqa: PLR0913 - the options of the command line, each by its name
        cls,
        *,
        argv: Sequence[str],
        pool: str | None,
        lease_id: str | None,
        key: str,
        timeout: str,
        priority: int,
        wanted: dict[str, Any],
        env: Sequence[str],
        cwd: str | None,
        has_stdin: bool | None,
        copy_in: Sequence[str] = (),
        copy_out: Sequence[str] = (),
    ) -> Self:
        """Read what stands on the command line.

        Raises:
            CommandError: It does not go together.
        """
        if (pool is None) == (lease_id is None):
            raise CommandError(
                "say where to run: --pool POOL, or --lease LEASE for one that is held",
                code=ExitCode.BAD_INPUT,
            )
        asked = None
        if pool is not None:
            timeout_ms = duration_ms(timeout) if timeout != "0" else 0
            asked = AcquireRequest(
                pool=pool,
                key=key,
                timeout_ms=timeout_ms,
                priority=priority,
                lease_ms=RUN_LEASE_MS,
                ack_ms=RUN_ACK_MS,
                **wanted,
            )
        return cls(
            argv=argv,
            asked=asked,
            lease_id=lease_id or "",
            env=dict(_variable(one) for one in env),
            cwd=cwd,
            has_stdin=not sys.stdin.isatty() if has_stdin is None else has_stdin,
            copies_in=[_copy_in(one) for one in copy_in],
            copies_out=[_copy_out(one) for one in copy_out],
        )


def _variable(text: str) -> tuple[str, str]:
    """Read `NAME=VALUE`; `NAME` alone passes ours on, as docker(1) does."""
    name, equals, value = text.partition("=")
    if not name:
        raise CommandError(f"{text} is not NAME=VALUE", code=ExitCode.BAD_INPUT)
    return name, value if equals else os.environ.get(name, "")


def _copy_in(text: str) -> tuple[Path, str]:
    """Read `HERE:THERE`; `HERE` alone keeps its name.

    Raises:
        CommandError: There is no such file or folder.
    """
    here, _, there = text.partition(":")
    path = Path(here)
    if not here or not path.exists():
        told = f"--copy-in {text}: there is no {here or 'source'} here"
        raise CommandError(told, code=ExitCode.BAD_INPUT)
    return path, there or path.resolve().name


def _copy_out(text: str) -> tuple[str, Path]:
    """Read `THERE:HERE`; `THERE` alone keeps its name.

    Raises:
        CommandError: It has no name.
    """
    there, _, here = text.partition(":")
    name = PurePosixPath(there).name
    if name in ("", ".."):
        told = f"--copy-out {text}: name the file or folder there"
        raise CommandError(told, code=ExitCode.BAD_INPUT)
    return there, Path(here, name) if not here or here.endswith("/") else Path(here)


async def run_command(remote: Remote, options: RunOptions) -> int:
    """Run the command; return what the process exits with."""
    with _Signals() as signals:
        try:
            await remote.first_contact()
            async with remote.async_client() as client:
                return await _run(client, options, signals)
        except asyncio.CancelledError:
            return 128 + signals.number
        except (HostlerError, CommandError) as error:
            report(error)
            return ExitCode.HOSTLER_FAILED_RUN


async def _run(client: Client, options: RunOptions, signals: _Signals) -> int:
    if options.asked is None:
        held = client.adopt(await client.lease_view(options.lease_id))
        return await _run_on(held, options, signals)
    held = await _acquire_short(client, options.asked)
    try:
        return await _run_on(held, options, signals)
    finally:
        await asyncio.shield(_release(held))


async def _acquire_short(client: Client, asked: AcquireRequest) -> HeldLease:
    """Acquire with a short lease; a pool whose leases are shorter still gets its own way."""
    try:
        return await acquire(client, asked)
    except ClientError as error:
        if error.code not in ("lease_ms_invalid", "ack_ms_invalid"):
            raise
        return await acquire(client, msgspec.structs.replace(asked, lease_ms=None, ack_ms=None))


async def _release(held: HeldLease) -> None:
    try:
        await held.release()
    except HostlerError as error:
        note(f"hostler: the lease {held.lease_id} could not be released: {error.message}")
        note("hint: it ends by itself when its heartbeats are missed")


async def acquire(client: Client, asked: AcquireRequest) -> HeldLease:
    """Wait in line for a node, saying so if it takes a while.

    Raises:
        LeaseRefused: It was not granted.
        CommandError: There is no such pool; the message names near ones.
    """
    try:
        return await client.acquire(asked, on_waiting=_waiting_teller())
    except ClientError as error:
        if error.status != 404:
            raise
        known = [pool.name for pool in await client.pools()]
        raise not_found("pool", asked.pool, known) from error


def _waiting_teller() -> Callable[[LeaseView], None]:
    """Make a callback that says, once for each reason, why a lease still waits."""
    told: set[str] = set()

    def tell(view: LeaseView) -> None:
        why = view.reason or "its turn"
        if why not in told:
            told.add(why)
            detail = f" ({view.reason_detail})" if view.reason_detail else ""
            place = "" if view.position is None else f", {view.position} ahead"
            note(f"{view.lease_id} waits in line of pool {view.pool}{place}: {why}{detail}")

    return tell


async def _run_on(held: HeldLease, options: RunOptions, signals: _Signals) -> int:
    for source, target in options.copies_in:
        await held.copy_in(source, target)
    status = await _carry_out(held, options, signals)
    for there, here in options.copies_out:
        try:
            await held.copy_out(there, here)
        except HostlerError as error:
            report(error)
            status = status or ExitCode.HOSTLER_FAILED_RUN
    return status


async def _carry_out(held: HeldLease, options: RunOptions, signals: _Signals) -> int:
    command = held.start(
        options.argv, env=options.env, cwd=options.cwd, has_stdin=options.has_stdin
    )
    async with command:
        signals.forward_to(command)
        if options.has_stdin:
            _start_feeding(command)
        result = await command.wait(_write)
    signals.forward_to(None)
    return result.status


async def _write(stream: str, data: bytes) -> None:
    """Write output where it belongs; in a thread, since a reader that stalls must not stop us."""
    await asyncio.to_thread(_write_now, 1 if stream == "stdout" else 2, data)


def _write_now(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _start_feeding(command: RunningCommand) -> None:
    """Pass standard input on, from a thread that nobody waits for: it may never end."""
    loop = asyncio.get_running_loop()

    def feed() -> None:
        while True:
            try:
                data = os.read(0, INPUT_BYTES)
            except OSError:
                data = b""
            writing = command.write(data, eof=not data)
            try:
                asyncio.run_coroutine_threadsafe(writing, loop).result()
            except (RuntimeError, asyncio.CancelledError):
                writing.close()
                return  # the command has ended, and the loop with it
            if not data:
                return

    threading.Thread(target=feed, name="hostler-stdin", daemon=True).start()


class _Signals:
    """Ctrl-C and SIGTERM: for the command once it runs, and before that the end of the wait.

    Attributes:
        number: Of the last signal.
    """

    def __init__(self) -> None:
        self.number = int(signal.SIGINT)
        self._count = 0
        self._command: RunningCommand | None = None
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._sending: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._on_signal, number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.remove_signal_handler(number)

    def forward_to(self, command: RunningCommand | None) -> None:
        """Hand signals to a command from now on; to `None`: they end what we do."""
        self._command = command

    def _on_signal(self, number: signal.Signals) -> None:
        self.number = int(number)
        self._count += 1
        if self._command is not None and self._count <= FORWARDED_COUNT_MAX:
            sending = self._loop.create_task(self._command.signal(number.name))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)
        elif self._task is not None:
            self._task.cancel()
