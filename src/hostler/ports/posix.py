"""What to say to a POSIX shell to run, signal and clear away commands. Texts only, no I/O.

For providers whose machines have a shell and `/proc`: every Linux with busybox or more. Arguments
and environment go in by standard input, not by a command line, which everybody on a host can read.
"""

from __future__ import annotations

import shlex
from typing import Final

from hostler.base.errors import Rejected
from hostler.ports.commands import LEASE_MARK, MachineCommand

SHELL: Final = "/bin/sh"

PATH_DEFAULT: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_BOOT: Final = 'eval "$(dd bs=1 count=$1 2>/dev/null)"'
"""Reads the script and not a byte more: what follows is the command's own input. Only `dd` with
single bytes promises that (`head -c` of busybox reads ahead)."""

_KILL_ROUNDS_MAX: Final = 100
"""Of looking for processes that are left, 50 ms apart: only one stuck in the kernel outlasts it."""

CLEARED_NOT: Final = 75
"""What `clear_script` exits with when something is left (EX_TEMPFAIL of sysexits.h)."""

_FIND: Final = r"""
hostler_find() {
    if grep -V 2>/dev/null | grep -q GNU; then
        grep -lszFxe "$1" /proc/[0-9]*/environ | cut -d/ -f3
        grep -lszFe "$1/" /proc/[0-9]*/environ | cut -d/ -f3
    else
        for p in /proc/[0-9]*; do
            tr '\0' '\n' 2>/dev/null <"$p/environ" | sed 's,$,/,' | grep -qFe "$1/" &&
                echo "${p#/proc/}"
        done
    fi
}
"""
"""Lists the processes with a mark in their environment. GNU's grep looks at all of them at once;
busybox's ends a line at the first NUL, so there each is translated, which containers can afford."""


def boot_argv(script: str) -> list[str]:
    """Return what runs a script that is then written, as UTF-8, to its standard input."""
    return [SHELL, "-c", _BOOT, "hostler", str(len(script.encode()))]


def command_script(command: MachineCommand) -> str:
    """Return the script that becomes a command.

    Raises:
        Rejected: A name in its environment is none; somebody has to change it.
    """
    folder, quote = command.folder, shlex.quote
    temporary = f"{folder}/tmp"  # noqa: S108 - in the folder of the lease
    lines = [
        f"export PATH=${{PATH:-{PATH_DEFAULT}}}",
        f"mkdir -p {quote(temporary)} {quote(f'{folder}/.run')} || exit 126",
        f"cd {quote(folder)} || exit 126",
        f"export HOME={quote(folder)} TMPDIR={quote(temporary)} LANG=C.UTF-8",
        *(f"export {_name(name)}={quote(value)}" for name, value in sorted(command.env.items())),
        f"export {LEASE_MARK}={quote(folder)}",
    ]
    if command.cwd:
        told = quote(f"hostler: {command.cwd}: there is no such folder")
        lines.append(f"cd {quote(command.cwd)} 2>/dev/null || {{ echo {told} >&2; exit 126; }}")
    program = command.argv[0]
    if "/" not in program:
        told = quote(f"hostler: {program}: there is no such program")
        lines.append(
            f"command -v {quote(program)} >/dev/null 2>&1 || {{ echo {told} >&2; exit 127; }}"
        )
    lines += [
        f"echo $$ >{quote(_pid_file(command))}",
        f"exec {shlex.join(command.argv)}{'' if command.has_stdin else ' </dev/null'}",
    ]
    return "\n".join(lines) + "\n"


def _name(name: str) -> str:
    if not name.isidentifier() or not name.isascii():
        raise Rejected("env_name_invalid", "this is no name of a variable", name=name)
    return name


def _pid_file(command: MachineCommand) -> str:
    return f"{command.folder}/.run/{command.command_id}"


def signal_script(command: MachineCommand, name: str) -> str:
    """Return the script that signals a command's process group; it may just be starting."""
    file = shlex.quote(_pid_file(command))
    return (
        f"n=0; while [ ! -s {file} ] && [ $n -lt 50 ]; do n=$((n + 1)); sleep 0.1; done\n"
        f"kill -s {shlex.quote(name.removeprefix('SIG'))} -- -$(cat {file})\n"
    )


def kill_script(mark: str) -> str:
    """Return the lines that kill whatever carries a mark, until nothing does or all else fails.

    Args:
        mark: `NAME=PATH` as a word of the shell, quoted where it must be. What has a path below
            that one carries the mark too.
    """
    return (
        f"{_FIND}\nrounds=0\n"
        f'while pids=$(hostler_find {mark}); [ -n "$pids" ]; do\n'
        f"    [ $rounds -lt {_KILL_ROUNDS_MAX} ] || exit {CLEARED_NOT}\n"
        "    kill -9 $pids 2>/dev/null\n"
        "    rounds=$((rounds + 1)); sleep 0.05\n"
        "done\n"
    )


def clear_script(folder: str) -> str:
    """Return the script that kills whatever runs under a folder's leases, and removes it."""
    mark = shlex.quote(f"{LEASE_MARK}={folder}")
    return kill_script(mark) + f"rm -rf {shlex.quote(folder)}\n"
