"""Leases over HTTP, durable, from a client on the same machine.

The server is a process of its own on a SQLite file. The client speaks HTTP/1.1 over open
connections with requests that are written out beforehand, so that what is measured is the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.registry import at_least, at_most, benchmark, percentile, stopwatch

NODES: Final = 200
CONNECTIONS: Final = 16
PAIRS: Final = 3_000
PACED_PAIRS: Final = 900
PACED_PER_S: Final = 300
HANDOVERS: Final = 300

_LENGTH: Final = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_LEASE: Final = re.compile(rb'"lease_id":"([^"]+)"')


class Connection:
    """One open connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def post(self, path: str, body: bytes) -> bytes:
        """Send a request and return the body of its answer."""
        self._writer.write(
            b"POST %s HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%s" % (path.encode(), len(body), body)
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        found = _LENGTH.search(head)
        if found is None or not head.startswith(b"HTTP/1.1 20"):
            raise RuntimeError(head.decode())
        return await self._reader.readexactly(int(found[1]))

    async def acquire(self, timeout_ms: int = 0) -> str:
        """Take a lease, waiting in line for it if asked to."""
        body = b'{"pool":"warm","timeout_ms":%d,"wait_ms":%d}' % (timeout_ms, timeout_ms)
        answer = await self.post("/v1/leases", body)
        found = _LEASE.search(answer)
        if found is None or b'"phase":"held"' not in answer:
            raise RuntimeError(answer.decode())
        return found[1].decode()

    async def release(self, lease_id: str) -> None:
        """Give a lease back."""
        await self.post(f"/v1/leases/{lease_id}/release", b"{}")

    async def pair(self) -> None:
        """Take a lease and give it back."""
        await self.release(await self.acquire())

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


@contextlib.asynccontextmanager
async def server(
    scratch: Path, node_count: int
) -> AsyncIterator[Callable[[], Awaitable[Connection]]]:
    """Run a server for the time of a block; yields what opens a connection to it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.lease_server", str(scratch), str(node_count),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    open_connections: list[Connection] = []
    try:
        if process.stdout is None:
            raise RuntimeError("no output to read")
        url = urlsplit((await process.stdout.readline()).decode().strip())

        async def connect() -> Connection:
            connection = Connection(*await asyncio.open_connection(url.hostname, url.port))
            open_connections.append(connection)
            return connection

        yield connect
    finally:
        for connection in open_connections:
            connection.close()
        process.send_signal(signal.SIGTERM)
        await process.wait()


@benchmark("http_lease_rate", unit="pairs/s", budget=at_least(1_000), runs=3)
async def lease_rate(scratch: Path) -> float:
    """Acquire and release as fast as it goes, from several connections."""
    async with server(scratch, NODES) as connect:
        connections = [await connect() for _ in range(CONNECTIONS)]

        async def work(connection: Connection) -> None:
            for _ in range(PAIRS // CONNECTIONS):
                await connection.pair()

        await asyncio.gather(*(connection.pair() for connection in connections))
        with stopwatch() as watch:
            await asyncio.gather(*map(work, connections))
    return PAIRS // CONNECTIONS * CONNECTIONS / watch.seconds


@benchmark("http_lease_p99_at_300", unit="ms", budget=at_most(15), runs=3)
async def lease_latency(scratch: Path) -> float:
    """The slowest hundredth of acquires, at 300 pairs a second."""
    async with server(scratch, NODES) as connect:
        free = [await connect() for _ in range(CONNECTIONS)]
        for connection in free:
            await connection.pair()
        times_ms: list[float] = []

        async def one() -> None:
            connection = free.pop() if free else await connect()
            began_s = time.perf_counter()
            lease_id = await connection.acquire()
            times_ms.append((time.perf_counter() - began_s) * 1_000)
            await connection.release(lease_id)
            free.append(connection)

        began_s = time.perf_counter()
        tasks = []
        for number in range(PACED_PAIRS):
            await asyncio.sleep(max(0.0, began_s + number / PACED_PER_S - time.perf_counter()))
            tasks.append(asyncio.create_task(one()))
        await asyncio.gather(*tasks)
    return percentile(times_ms, 99)


@benchmark("http_lease_handover_p50", unit="ms", budget=at_most(3), runs=3)
async def handover(scratch: Path) -> float:
    """From a release to the answer of whoever waits for that node."""
    async with server(scratch, 1) as connect:
        holder, waiter = await connect(), await connect()
        held = await holder.acquire()
        times_ms: list[float] = []
        for _ in range(HANDOVERS):
            waiting = asyncio.create_task(waiter.acquire(timeout_ms=10_000))
            await asyncio.sleep(0.005)
            began_s = time.perf_counter()
            releasing = asyncio.create_task(holder.release(held))
            held = await waiting
            times_ms.append((time.perf_counter() - began_s) * 1_000)
            await releasing
            holder, waiter = waiter, holder
    return percentile(times_ms, 50)
