"""Sandboxes for agents: what a model writes runs on a leased node and nowhere else.

    python sandboxes.py hostler.yaml

reads one command a line from standard input, each `SESSION COMMAND`, and answers in JSON. A session
keeps its node, and with it the files that its commands wrote, until it is closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import hostler.embedded
from hostler.client import Client, HeldLease

OUTPUT_BYTES_MAX = 64 * 1024
"""As much as a model shall read; what follows is counted and dropped."""


@dataclass(frozen=True)
class Ran:
    """What became of a command."""

    exit_code: int
    output: str
    is_cut: bool = False
    """There was more output."""
    is_late: bool = False
    """It was killed at its deadline."""


class Sandbox:
    """One session on one node."""

    def __init__(self, lease: HeldLease) -> None:
        self.lease = lease

    async def run(self, command: str, *, timeout_s: float = 60.0) -> Ran:
        """Run a shell command, output and errors together; it is killed when it takes too long."""
        output, size = bytearray(), 0

        def take(_: str, data: bytes) -> None:
            nonlocal size
            size += len(data)
            output.extend(data[: OUTPUT_BYTES_MAX - len(output)])

        status, is_late = 137, False
        try:
            async with asyncio.timeout(timeout_s):
                done = await self.lease.run(["sh", "-c", command], on_output=take)
                status = done.status
        except TimeoutError:
            is_late = True
        text = output.decode(errors="replace")
        return Ran(status, text, is_cut=size > len(output), is_late=is_late)

    async def write(self, path: str, content: bytes) -> None:
        """Write a file in the session's folder."""
        await self.lease.run(["sh", "-c", 'cat > "$1"', "sh", path], stdin=content)


@asynccontextmanager
async def sandbox(client: Client, pool: str, session: str) -> AsyncIterator[Sandbox]:
    """Hold a node for a session. `client` may be one of a server as well as an embedded fleet."""
    async with client.lease(pool, key=session, labels={"session": session}) as lease:
        yield Sandbox(lease)


async def main(config: str) -> None:
    """Serve sessions from standard input; all of them end with it."""
    async with hostler.embedded.open(config) as fleet, asyncio.TaskGroup() as sessions:
        queues: dict[str, asyncio.Queue[str | None]] = {}

        async def serve(session: str, commands: asyncio.Queue[str | None]) -> None:
            async with sandbox(fleet, "sandboxes", session) as box:
                while (command := await commands.get()) is not None:
                    ran = await box.run(command)
                    print(json.dumps({"session": session, **vars(ran)}), flush=True)

        while line := await asyncio.to_thread(sys.stdin.readline):
            session, _, command = line.strip().partition(" ")
            if session not in queues:
                queues[session] = asyncio.Queue()
                sessions.create_task(serve(session, queues[session]))
            queues[session].put_nowait(command)
        for commands in queues.values():
            commands.put_nowait(None)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
