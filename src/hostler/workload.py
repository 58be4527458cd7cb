"""For the code inside a job: who it is, what it works by, and what is about to happen to it.

One file on the standard library alone, so that it may also be copied into a job's own code. A job
needs none of it: everything here is an environment variable, a file or a line on `$NOTIFY_SOCKET`,
and `docs/workload.md` says which. Outside of Hostler all of it works and says nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

POLL_S: Final = 0.5
"""How often a change is looked for, beyond signals."""

READ_TRIES_MAX: Final = 10
"""Readings of a configuration that is replaced while it is read: twice is already rare."""

T = TypeVar("T")


@dataclass(frozen=True)
class Identity:
    """Who a job is, and where. Outside of Hostler every name is empty."""

    fleet: str
    bundle: str
    job: str
    replica: str
    index: int
    role: str
    allocation: str
    epoch: int
    """Rises with each new place; what fences an older copy, for a store of the job's own."""
    node: str
    machine: str
    pool: str
    tier: str
    devices: dict[str, tuple[str, ...]]
    """Ids of the devices that it holds, by kind in lower case."""


@dataclass(frozen=True)
class Config:
    """What a job works by. `number` rises with each change; 0 means that it was given nothing."""

    number: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Texts by name; the files themselves are in `folder`."""
    folder: Path | None = None
    """Where the files are; stays until the change after the next."""


@dataclass(frozen=True)
class Notice:
    """The machine is about to be taken back."""

    kind: str
    """`terminate`: it goes at `ends_at_ms`. `rebalance`: it may, and nobody knows when."""
    ends_at_ms: int
    """Milliseconds since 1970, by the clock of the node."""


# -- who ---------------------------------------------------------------------------------------


def me() -> Identity:
    """Say who this job is."""
    said = os.environ.get
    prefix = "HOSTLER_DEVICE_"
    return Identity(
        fleet=said("HOSTLER_FLEET_ID", ""),
        bundle=said("HOSTLER_BUNDLE", ""),
        job=said("HOSTLER_JOB", ""),
        replica=said("HOSTLER_REPLICA", ""),
        index=int(said("HOSTLER_REPLICA_INDEX", "0")),
        role=said("HOSTLER_ROLE", ""),
        allocation=said("HOSTLER_ALLOCATION_ID", ""),
        epoch=int(said("HOSTLER_EPOCH", "0")),
        node=said("HOSTLER_NODE_ID", ""),
        machine=said("HOSTLER_MACHINE_ID", ""),
        pool=said("HOSTLER_POOL", ""),
        tier=said("HOSTLER_TIER", ""),
        devices={
            name[len(prefix) :].lower(): tuple(ids.split(","))
            for name, ids in sorted(os.environ.items())
            if name.startswith(prefix)
        },
    )


# -- what it says --------------------------------------------------------------------------------


def ready() -> None:
    """Say that this job is ready. Heeded where its readiness is `sd_notify`."""
    _notify("READY=1")


def unready() -> None:
    """Take `ready` back."""
    _notify("STOPPING=1")


def applied(config: Config) -> None:
    """Say that this job works by a configuration from now on; people see it in `describe`."""
    if config.number:
        _notify(f"X_HOSTLER_CONFIG={config.number}")


def _notify(line: str) -> None:
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as teller:
        teller.sendto(line.encode(), address)


# -- what it works by ----------------------------------------------------------------------------


def config() -> Config:
    """Read what this job works by now: all of one number, never parts of two.

    Raises:
        OSError: It cannot be read.
    """
    link = os.environ.get("HOSTLER_CONFIG")
    if not link:
        return Config()
    for _ in range(READ_TRIES_MAX):
        try:
            return _read(Path(link).resolve(strict=True))
        except FileNotFoundError:
            if not os.path.lexists(link):
                return Config()
    raise FileNotFoundError(f"the configuration in {link} changed whenever it was read")


def _read(folder: Path) -> Config:
    files = folder / "files"
    return Config(
        number=int((folder / "number").read_text(encoding="utf-8")),
        values=json.loads((folder / "values.json").read_text(encoding="utf-8")),
        files={each.name: each.read_text(encoding="utf-8") for each in sorted(files.iterdir())},
        folder=files,
    )


def on_change(take: Callable[[Config], None], *, every_s: float = POLL_S) -> None:
    """Have `take` called with what there is now, and with every later configuration.

    The first call is made here, and what it raises is raised here. Later ones come from a thread of
    their own, one after the other; a configuration that was overtaken may be left out, the latest
    never is. When `take` returns, the configuration counts as applied. When it raises, the trace
    goes to standard error, the configuration does not count, and the next one is awaited.
    """
    first = config()
    take(first)
    applied(first)

    def take_later(later: Config) -> None:
        take(later)
        applied(later)

    _watch(config, first.number, lambda found: found.number, take_later, every_s)


def role() -> str:
    """Say which role this job has now. It may change while it runs: a backup may be promoted.

    Raises:
        OSError: It cannot be read.
    """
    file = os.environ.get("HOSTLER_ROLE_FILE")
    if not file:
        return os.environ.get("HOSTLER_ROLE", "")
    return Path(file).read_text(encoding="utf-8").strip()


def on_role(take: Callable[[str], None], *, every_s: float = POLL_S) -> None:
    """Have `take` called with the role of now, here, and with every later one, in a thread."""
    first = role()
    take(first)
    _watch(role, first, lambda found: found, take, every_s)


# -- what is about to happen ---------------------------------------------------------------------


def notice() -> Notice | None:
    """Say whether the machine is about to be taken back."""
    file = os.environ.get("HOSTLER_NOTICE")
    if not file:
        return None
    try:
        said = json.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Notice(kind=said["kind"], ends_at_ms=said["ends_at_ms"])


def on_notice(take: Callable[[Notice], None], *, every_s: float = POLL_S) -> None:
    """Have `take` called, in a thread of its own, when there is a notice, and with a later one."""

    def take_any(found: Notice | None) -> None:
        if found is not None:
            take(found)

    _watch(notice, None, lambda found: found, take_any, every_s)


def stopping(within_s: float = 0.0) -> bool:
    """Say whether this job was told to stop; waits so long for it, or for ever if it is negative.

    `while not stopping(1): ...` is a loop that ends in time. The first call has to be made in the
    main thread: it begins to listen for SIGTERM and SIGINT, which end a job that does not.
    """
    listener = _listener()
    ready, _, _ = select.select([listener], [], [], None if within_s < 0 else within_s)
    return bool(ready)


@cache
def _listener() -> int:
    """Listen for a stop; gives what can be read from once one has come, and for ever after.

    A pipe, because an event or a lock may be held by the very code that the signal interrupts.
    """
    listener, teller = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def stop(_number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(teller, b"s")

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return listener


def _watch(
    read: Callable[[], T],
    known: object,
    name: Callable[[T], object],
    take: Callable[[T], None],
    every_s: float,
) -> None:
    """Call `take` in a thread whenever what is read has another name than before."""

    def watch(known: object) -> None:
        while True:
            time.sleep(every_s)
            try:
                found = read()
                if name(found) != known:
                    known = name(found)
                    take(found)
            except Exception:  # noqa: BLE001 - it is the job's code; the next change may go better
                traceback.print_exc(file=sys.stderr)

    threading.Thread(target=watch, args=(known,), name="hostler-watch", daemon=True).start()
