"""What the provider keeps on the server's disk: hosts that were used, and what was begun there.

A claim is written before its host is asked and removed when it is known that nothing of it is
there. So a launch whose answer was lost finds its host again, and a host that does not answer is
told of by what we know of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from hostler.base.encoding import decode, encode
from hostler.ports.provider import Machine
from hostler.providers.ssh.options import Host

LOCK_POLL_S: Final = 0.02


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A host that is, or may be, ours."""

    host: Host
    machine: Machine


class Memory:
    """One fleet's claims in a folder."""

    def __init__(self, folder: Path, fleet_id: str) -> None:
        self._folder = folder
        self._claims = folder / hashlib.blake2b(fleet_id.encode(), digest_size=8).hexdigest()

    def claims(self) -> Iterator[Claim]:
        """Yield all claims, by host."""
        for file in sorted(self._claims.glob("ssh-*.json")):
            with suppress(FileNotFoundError):
                yield decode(file.read_bytes(), Claim)

    def by_machine(self, machine_id: str) -> Claim | None:
        """Return the claim that a machine stands for."""
        return next((one for one in self.claims() if one.machine.machine_id == machine_id), None)

    def by_token(self, token: str) -> Claim | None:
        """Return what a launch has begun already."""
        return next((one for one in self.claims() if one.machine.token == token), None)

    def add(self, claim: Claim) -> bool:
        """Write a claim down; say whether no other one was there for its host."""
        self._claims.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._claims / f"{claim.machine.machine_id}.new"
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(file, encode(claim))
            os.fsync(file)
        finally:
            os.close(file)
        try:
            os.link(draft, self._file(claim))
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True

    def drop(self, claim: Claim) -> None:
        """Forget a claim: nothing of it is there."""
        self._file(claim).unlink(missing_ok=True)

    def _file(self, claim: Claim) -> Path:
        return self._claims / f"{claim.host.mark}.json"

    @contextlib.asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Let one launch at a time choose a host, also if another server were still about."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                await asyncio.sleep(LOCK_POLL_S)
            yield
        finally:
            os.close(lock)
