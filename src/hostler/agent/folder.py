"""The agent's data folder: identity, authority, and a folder for each allocation and lease.

lock            held by the one agent that uses the folder
credential      node id and credential, readable by the owner only
join_key        makes a repeated join the same join
incarnation     raised at each start
notice          that the machine is about to be taken back, for jobs to read
authority       until when work is authorised: boot id and milliseconds since boot
agent.sock      where supervisors say that something changed
supervisor.pyc  what supervisors run
allocations/    NAME-EPOCH/ each: start.json, what the supervisor keeps, work/ and tmp/
leases/         NAME-EPOCH/ each
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote

import msgspec

from hostler.agent.clock import Clock
from hostler.agent.core.inputs import AllocationKey, LeaseKey
from hostler.base.errors import Rejected
from hostler.wire.agent import JoinResponse


class DataFolder:
    """One agent's place on disk; held exclusively until `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.allocations = self.path / "allocations"
        self.leases = self.path / "leases"
        self.authority = self.path / "authority"
        self.notice = self.path / "notice"
        self._lock: IO[str] | None = None

    def open(self) -> None:
        """Make the folder if it is not there, and take it for us alone.

        Raises:
            Rejected: Another agent uses it, or it cannot be made; choose another folder.
        """
        try:
            for folder in (self.path, self.allocations, self.leases):
                folder.mkdir(mode=0o750, parents=True, exist_ok=True)
            lock = (self.path / "lock").open("a", encoding="utf-8")
        except OSError as error:
            raise Rejected(
                "data_folder_unusable", "the data folder cannot be used", folder=str(self.path)
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise Rejected(
                "data_folder_taken", "another agent uses this data folder", folder=str(self.path)
            ) from error
        self._lock = lock

    def close(self) -> None:
        """Let another agent have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def allocation(self, key: AllocationKey) -> Path:
        """Name the folder of an allocation."""
        return self.allocations / f"{quote(key.allocation_id, safe='')}-{key.epoch}"

    def lease(self, key: LeaseKey) -> Path:
        """Name the folder of a lease."""
        return self.leases / f"{quote(key.lease_id, safe='')}-{key.epoch}"

    def found_leases(self) -> list[LeaseKey]:
        """Read which leases have folders."""
        found = []
        for folder in sorted(self.leases.iterdir()):
            name, _, epoch = folder.name.rpartition("-")
            if name and epoch.isdigit():
                found.append(LeaseKey(unquote(name), int(epoch)))
        return found

    def read_identity(self) -> JoinResponse | None:
        """Read who we are; `None` before the first join.

        Raises:
            Rejected: The file is damaged; the operator decides whether to join anew.
        """
        try:
            return msgspec.json.decode((self.path / "credential").read_bytes(), type=JoinResponse)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise Rejected(
                "credential_unreadable",
                "the credential file is damaged; remove it to join as a new node",
                file=str(self.path / "credential"),
            ) from error

    def write_identity(self, identity: JoinResponse) -> None:
        """Keep who we are, for nobody else to read.

        Raises:
            Rejected: The disk does not take it; the operator has to make room.
        """
        self._keep("credential", msgspec.json.encode(identity))

    def join_key(self) -> str:
        """Give the key under which we join, however often we have to ask.

        Raises:
            Rejected: As `write_identity`.
        """
        file = self.path / "join_key"
        if not file.exists():
            self._keep("join_key", secrets.token_hex(16).encode())
        return file.read_text(encoding="ascii")

    def raise_incarnation(self) -> int:
        """Count this start.

        Raises:
            Rejected: As `write_identity`.
        """
        file = self.path / "incarnation"
        try:
            incarnation = int(file.read_text(encoding="ascii")) + 1
        except (FileNotFoundError, ValueError):
            incarnation = 1
        self._keep("incarnation", str(incarnation).encode())
        return incarnation

    def write_authority(self, until_boot_ms: int) -> None:
        """Note until when work is authorised; supervisors and our next life read it.

        On a full disk the file is written over, which needs no more room. If even that fails, the
        supervisors will stop what must not run without authority.
        """
        data = f"{until_boot_ms:016d} {boot_id()}".encode()
        try:
            write_whole(self.authority, data)
        except OSError:
            with contextlib.suppress(OSError), self.authority.open("r+b") as file:
                file.write(data)

    def write_notice(self, kind: str, ends_at_ms: int) -> None:
        """Let jobs read that the machine is about to be taken back; on a full disk they cannot."""
        with contextlib.suppress(OSError):
            write_whole(self.notice, msgspec.json.encode({"kind": kind, "ends_at_ms": ends_at_ms}))

    def forget_notice(self) -> None:
        """Take back what an earlier life wrote; if it still holds it is read again."""
        self.notice.unlink(missing_ok=True)

    def read_authority(self, clock: Clock) -> int | None:
        """Read until when work is authorised, in milliseconds since 1970."""
        try:
            until_boot_ms, _, written_in = self.authority.read_text(encoding="ascii").partition(" ")
            if written_in == boot_id():
                return clock.from_boot_ms(int(until_boot_ms))
        except (FileNotFoundError, ValueError):
            return None
        return None

    def _keep(self, name: str, data: bytes) -> None:
        try:
            write_whole(self.path / name, data, mode=0o600, is_durable=True)
        except OSError as error:
            raise Rejected(
                "data_folder_unwritable",
                "the data folder cannot be written",
                folder=str(self.path),
                why=error.strerror,
            ) from error


def boot_id() -> str:
    """Name this boot of the machine; time since boot means nothing in another one."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def write_whole(file: Path, data: bytes, *, mode: int = 0o640, is_durable: bool = False) -> None:
    """Replace a file so that a reader sees the old or the new content.

    A durable one is there after a power cut; what describes running processes need not be.
    """
    fresh = file.with_name(file.name + ".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(fresh, flags, mode), "wb") as target:
        target.write(data)
        if is_durable:
            target.flush()
            os.fsync(target.fileno())
    fresh.replace(file)
    if is_durable:
        folder = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
