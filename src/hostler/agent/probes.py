"""Readiness checks that ask from outside: http, tcp and exec. Each is one try with a deadline."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final, assert_never

from hostler.wire.work import ExecReadiness, HttpReadiness, TcpReadiness

LOOPBACK: Final = "127.0.0.1"
"""A job is asked where it runs. One that does not listen on loopback can use an exec check."""


async def probe(
    readiness: HttpReadiness | TcpReadiness | ExecReadiness, *, env: Mapping[str, str], cwd: Path
) -> bool:
    """Try once; anything but a clear yes within the timeout is no."""
    try:
        async with asyncio.timeout(readiness.timeout_ms / 1_000):
            match readiness:
                case HttpReadiness():
                    return await _http(readiness.port, readiness.path)
                case TcpReadiness():
                    return await _tcp(readiness.port)
                case ExecReadiness():
                    return await _exec(readiness.argv, env, cwd)
                case _:
                    assert_never(readiness)
    except (OSError, TimeoutError, ValueError):
        return False


async def _http(port: int, path: str) -> bool:
    # One request without a client library: a node may ask a hundred jobs every second.
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        request = f"GET {path} HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        await writer.drain()
        words = (await reader.readline()).split()
        return len(words) > 1 and words[0].startswith(b"HTTP/") and 200 <= int(words[1]) < 400
    finally:
        writer.close()


async def _tcp(port: int) -> bool:
    _, writer = await asyncio.open_connection(LOOPBACK, port)
    writer.close()
    return True


async def _exec(argv: list[str], env: Mapping[str, str], cwd: Path) -> bool:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
    )
    try:
        return await process.wait() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
