"""Commands in machines: what a provider offers whose machines run no agent of ours.

Some machines are reached rather than reaching out: a container by its engine, a host by ssh. Their
provider can run a command in them, and the server acts as their agent (`hostler.api.deputies`). A
provider is as dumb here as everywhere: it carries bytes, and tells how a command ended.
"""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

import msgspec

from hostler.base.ids import MachineId
from hostler.ports.provider import Provider

StreamName = Literal["stdout", "stderr"]

LEASE_MARK = "HOSTLER_LEASE_FOLDER"
"""The variable by which everything that runs under a lease is found, whatever it forks. An agent
marks its leased commands so too."""


class MachineCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One command to run in a machine."""

    command_id: str
    """Names it within its machine; never used twice there. Letters, digits and dashes."""
    folder: str
    """The absolute path of its lease's folder, made if it is not there; `HOME` and the mark."""
    argv: list[str]
    """The program and its arguments; found on the machine's own `PATH`, no shell."""
    env: dict[str, str] = {}
    """Besides what the machine's programs have anyway."""
    cwd: str | None = None
    """Within the folder, or absolute; `None`: the folder itself."""
    has_stdin: bool = False


class CommandEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended: one of the two is set."""

    exit_code: int | None = None
    """128 and the signal's number also where the platform tells a signal only so."""
    signal: str | None = None
    """Such as `SIGKILL`."""


class Execution(Protocol):
    """A command that runs. Every method raises `ProviderFailed` when the way to it is lost."""

    async def read(self) -> tuple[StreamName, bytes] | None:
        """Return what it wrote next, in order as far as the platform tells; `None`: no more.

        Whoever does not read stops the command in its writing, and nobody's memory fills up.
        """
        ...

    async def write(self, data: bytes) -> None:
        """Give its input bytes; returns when there is room for more. One that is gone takes all."""
        ...

    async def write_eof(self) -> None:
        """Close its input."""
        ...

    async def signal(self, name: str) -> None:
        """Send a signal, such as `SIGTERM`, to the process group of the command."""
        ...

    async def wait(self) -> CommandEnd:
        """Return how it ended; to be asked once `read` has given `None`."""
        ...

    async def close(self) -> None:
        """Let go of it. What still runs of it is killed with its lease."""
        ...


class MachineFound(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe finds."""

    work_folder: str
    """An absolute path in the machine, ours to fill: leases have their folders below it."""


@runtime_checkable
class CommandProvider(Provider, Protocol):
    """A provider that runs commands in its machines. Any call may be cancelled at any time."""

    async def probe(self, machine_id: MachineId) -> MachineFound:
        """See that commands can run there, and tell the machine that its server still lives.

        The only call that puts off the instant at which a machine ends itself, so it is made for
        nodes that the server has a record of, and for nothing else.

        Raises:
            ProviderFailed: They cannot; the message says why.
        """
        ...

    async def exec(self, machine_id: MachineId, command: MachineCommand) -> Execution:
        """Start a command. A program that is not there is a command that exits with 127.

        Raises:
            ProviderFailed: It was not started, or nobody knows.
        """
        ...

    async def clear(self, machine_id: MachineId, folder: str) -> None:
        """Kill whatever runs under this folder's leases, and remove it; returns when it is done.

        Raises:
            ProviderFailed: Something may be left.
        """
        ...
