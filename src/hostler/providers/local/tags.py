"""The label of a machine: a file in its folder, written before the machine runs.

A machine's folder holds `label.json` (what it is), `agent.json` (its agent's options, with the join
token, for its owner's eyes alone), `started` (there once its agent has been started), `agent.log`
and `data/`, where its agent and its jobs keep their files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from hostler.base.encoding import decode, encode
from hostler.base.ids import MachineId
from hostler.ports.provider import Machine

MACHINE_MARK: Final = "HOSTLER_MACHINE_ID"
"""The environment variable by which a machine's processes are known, whatever they fork."""


def machine_id_of(machines: Path, fleet_id: str, token: str) -> MachineId:
    """Return the one name of the machine that a launch makes: the same token is the same machine.

    The folder is in it, so that two servers on one host never take each other's processes for
    their own, even if somebody gave their fleets one name.
    """
    told = "\x00".join((str(machines), fleet_id, token)).encode()
    return MachineId(f"local-{hashlib.blake2b(told, digest_size=8).hexdigest()}")


class Home:
    """The folder of one machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def options_path(self) -> Path:
        """Where the agent's options are."""
        return self.path / "agent.json"

    @property
    def log_path(self) -> Path:
        """Where the agent's output goes."""
        return self.path / "agent.log"

    @property
    def data_path(self) -> Path:
        """The agent's own folder."""
        return self.path / "data"

    def label(self) -> Machine | None:
        """Return what the label says, or `None` if there is no machine here."""
        try:
            return decode((self.path / "label.json").read_bytes(), Machine)
        except (FileNotFoundError, NotADirectoryError, msgspec.MsgspecError):
            return None

    def agent_pid(self) -> int | None:
        """Return the process that was started as its agent; `None`: none was, as far as we know."""
        try:
            return int((self.path / "started").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def mark_started(self, pid: int) -> None:
        """Note that the agent has been started."""
        draft = self.path / "started.new"
        draft.write_text(str(pid))
        draft.rename(self.path / "started")

    @property
    def is_ending(self) -> bool:
        """Whether somebody began to stop it."""
        return (self.path / "ending").exists()

    def mark_ending(self) -> None:
        """Note that it is being stopped, so that a stop that is cut off is ended by who looks."""
        with suppress(FileNotFoundError):  # another stop was quicker
            (self.path / "ending").touch()

    def remove(self) -> None:
        """Forget the machine: first its label, so that half a removal is no machine."""
        with suppress(FileNotFoundError):
            (self.path / "label.json").unlink()
        shutil.rmtree(self.path, ignore_errors=True)


def make_home(machines: Path, label: Machine, agent_options: bytes) -> Home:
    """Make a machine's folder, whole or not at all."""
    draft = Home(machines.parent / "births" / label.machine_id)
    draft.remove()
    draft.data_path.mkdir(mode=0o700, parents=True)
    _write(draft.options_path, agent_options)
    _write(draft.path / "label.json", encode(label))
    machines.mkdir(mode=0o700, parents=True, exist_ok=True)
    home = Home(machines / label.machine_id)
    draft.path.rename(home.path)
    folder = os.open(machines, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return home


def _write(path: Path, body: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, body)
        os.fsync(file)
    finally:
        os.close(file)


def homes(machines: Path) -> Iterator[Home]:
    """Yield every folder in which there may be a machine, by name."""
    with suppress(FileNotFoundError):
        for path in sorted(machines.iterdir()):
            yield Home(path)
