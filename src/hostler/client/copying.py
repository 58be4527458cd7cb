"""Copying to and from a leased node: `tar` there, over a command like any other.

So it works wherever commands do, and needs nothing of a node but `tar` and `mkdir`.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final

from hostler.base.errors import Failed, Rejected
from hostler.client import archives

if TYPE_CHECKING:
    from hostler.client.lease import HeldLease, RunningCommand

COPY_BYTES_MAX: Final = 8 * 2**30
"""Most bytes of one copy, unless the caller says otherwise."""

SPOOL_BYTES: Final = 4 * 2**20
"""An archive above this waits in a temporary file instead of in memory."""

CHUNK_BYTES: Final = 256 * 1024

ERROR_CHARACTERS_MAX: Final = 2_000

NOT_FOUND_STATUS: Final = 127


class CopyFailed(Failed):
    """The node did not take or give what was to be copied."""


async def copy_in(lease: HeldLease, source: Path, target: str, *, bytes_max: int) -> None:
    """Copy a file or folder to the node; see `HeldLease.copy_in`."""
    folder, name = _target(target, source.resolve().name)
    with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as archive:
        await asyncio.to_thread(archives.pack, source, name, archive, bytes_max)
        archive.seek(0)
        await _run(lease, ["mkdir", "-p", "--", folder])
        # Where root unpacks, files would get the owners' numbers of here: archives of ours say 0.
        await _run(lease, ["tar", "-x", "-f", "-", "-C", folder], source=archive)


async def copy_out(lease: HeldLease, source: str, target: Path, *, bytes_max: int) -> None:
    """Copy a file or folder from the node; see `HeldLease.copy_out`."""
    path = PurePosixPath(source)
    if path.name in ("", "..") or "\0" in source:
        raise Rejected("copy_source_invalid", f"{source!r} has no name; name a file or folder")
    with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as archive:
        # Each name in the archive begins with that of the thing itself.
        packing = ["tar", "-c", "-f", "-", "-C", str(path.parent), f"./{path.name}"]
        await _run(lease, packing, into=archive, bytes_max=bytes_max)
        archive.seek(0)
        await asyncio.to_thread(archives.unpack, archive, target, bytes_max)


def _target(target: str, name: str) -> tuple[str, str]:
    """Say in which folder of the node a copy comes to lie, and as what.

    A target that ends with a slash is a folder to put it into; else it is what it will be called.
    """
    if not target or "\0" in target:
        raise Rejected("copy_target_invalid", "say where to copy to")
    path = PurePosixPath(target)
    if target.endswith("/") or path.name in ("", ".."):
        return str(path), name
    return str(path.parent), path.name


async def _run(
    lease: HeldLease,
    argv: list[str],
    *,
    source: IO[bytes] | None = None,
    into: IO[bytes] | None = None,
    bytes_max: int = 0,
) -> None:
    """Run a step of a copy on the node.

    Raises:
        CopyFailed: It ended with an error, or sent too much.
    """
    said = bytearray()
    # An archive is a little larger than what is in it: a header for each entry.
    left_bytes = bytes_max + archives.ENTRIES_MAX * 1_024

    async def take(stream: str, data: bytes) -> None:
        nonlocal left_bytes
        if stream == "stderr":
            said.extend(data[: ERROR_CHARACTERS_MAX - len(said)])
            return
        left_bytes -= len(data)
        if left_bytes < 0:
            raise CopyFailed("copy_too_large", f"there is more to copy than {bytes_max} bytes")
        if into is not None:
            await asyncio.to_thread(into.write, data)

    async with lease.start(argv, has_stdin=source is not None) as command:
        feeding = None if source is None else asyncio.create_task(_feed(command, source))
        try:
            result = await command.wait(take)
        finally:
            if feeding is not None:
                feeding.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await feeding
    if result.status == NOT_FOUND_STATUS:
        told = f"the node has no `{argv[0]}`, which copying needs"
        raise CopyFailed("copy_unsupported", told, lease_id=lease.lease_id)
    if result.status:
        told = said.decode(errors="replace").strip() or f"{argv[0]} ended with {result.status}"
        raise CopyFailed("copy_failed", told, lease_id=lease.lease_id)


async def _feed(command: RunningCommand, source: IO[bytes]) -> None:
    while data := await asyncio.to_thread(source.read, CHUNK_BYTES):
        await command.write(data)
    await command.write(b"", eof=True)
