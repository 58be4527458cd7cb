"""The files through which the agent and a supervisor talk. See `hostler.agent.supervisor`."""

from __future__ import annotations

import fcntl
import os
import py_compile
import signal
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import hostler.agent.supervisor
from hostler.agent.core.inputs import ProcessEnd, ProcessView
from hostler.agent.folder import write_whole
from hostler.wire.work import Launch

AGENT_SOCKET_FROM_FOLDER: Final = "../../agent.sock"

DIGITS_MAX: Final = 18
"""Of a number that a job may say; records hold 64 bits."""

_FLOCK: Final = struct.Struct("hhqqi")
"""`struct flock` of 64-bit Linux: type, whence, start, length, pid."""


def compiled_supervisor(data_folder: Path) -> Path:
    """Compile the supervisor once; compiling it anew would cost each of them 1 MB and 30 ms."""
    source = hostler.agent.supervisor.__file__
    target = data_folder / "supervisor.pyc"
    try:
        py_compile.compile(source, cfile=str(target), doraise=True, optimize=2)
    except OSError:
        # A full disk is no reason not to look after what runs already.
        return Path(source)
    return target


def write_launch(
    folder: Path,
    launch: Launch,
    *,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    authority: Path,
) -> None:
    """Write what a supervisor is to run."""
    entries = [
        f"folder={folder}",
        f"cwd={cwd}",
        f"stop_signal={signal.Signals[launch.stop_signal].value}",
        f"stop_grace_ms={launch.stop_grace_ms}",
        f"log_file_bytes_max={launch.log_file_bytes_max}",
        f"log_file_count_max={launch.log_file_count_max}",
        f"agent_socket={AGENT_SOCKET_FROM_FOLDER}",
        *(f"argv={each}" for each in argv),
        *(f"env={name}={value}" for name, value in env.items()),
    ]
    if launch.disconnect == "stop":
        entries.append(f"authority={authority}")
    write_whole(folder / "launch", b"\0".join(os.fsencode(each) for each in entries), mode=0o600)


def write_command(folder: Path, stop_signal: str, grace_ms: int) -> None:
    """Write what a supervisor is to do; it looks when it is poked, and when it starts."""
    number = signal.Signals[stop_signal].value
    write_whole(folder / "command", f"stop {number} {grace_ms}".encode())


def read_state(folder: Path) -> ProcessView | None:
    """Read what a supervisor has told; `None` when it has not told anything."""
    said = _said(folder)
    if said is None:
        return None

    def number(name: str) -> int | None:
        return int(said[name]) if name in said else None

    end = None
    ended_at_ms = number("ended_at_ms")
    if ended_at_ms is not None:
        ended_by = number("signal")
        end = ProcessEnd(
            ended_at_ms=ended_at_ms,
            exit_code=number("exit_code"),
            signal=None if ended_by is None else signal_name(ended_by),
            start_error=said.get("start_error"),
            is_fenced="is_fenced" in said,
        )
    return ProcessView(
        pid=number("pid"),
        started_at_ms=number("started_at_ms"),
        is_ready=said.get("is_ready") == "1",
        is_stopping="is_stopping" in said,
        config_applied=_count(said.get("config_applied", "")),
        end=end,
    )


def main_process(folder: Path) -> tuple[int, int] | None:
    """Read the pid of a job's main process and its start in ticks; `None` while there is none."""
    said = _said(folder)
    if said is None or "pid_start_ticks" not in said or "ended_at_ms" in said:
        return None
    return int(said["pid"]), int(said["pid_start_ticks"])


def _said(folder: Path) -> dict[str, str] | None:
    try:
        text = (folder / "state").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _count(text: str) -> int:
    """Read a number that a job wrote; what is none says nothing."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else 0


def holder_pid(folder: Path) -> int | None:
    """Say which process holds the folder's lock, that is: its living supervisor."""
    try:
        file = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked)[: _FLOCK.size])
    finally:
        os.close(file)
    return None if kind == fcntl.F_UNLCK else int(pid)


def signal_name(number: int) -> str:
    """Name a signal; real-time ones have no name of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
