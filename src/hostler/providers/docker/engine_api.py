"""The engine's HTTP API over its socket: one call, one answer, and codes turned into failures.

The API is Docker's, version 1.41 (docs.docker.com/engine/api/v1.41, read 2026-11-30), which podman
from 4 on speaks too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx

from hostler.ports.provider import (
    CapacityUnavailable,
    CredentialsRejected,
    OutcomeUnknown,
    ProviderFailed,
    RequestInvalid,
    Throttled,
)

VERSION: Final = "v1.41"

CONNECT_S_MAX: Final = 5.0
"""A socket on this host answers at once, or nobody listens."""

CONNECTION_COUNT_MAX: Final = 32

THROTTLED_MS: Final = 1_000
"""After a 429 without a word on when to come back."""

LOG_LINES_MAX: Final = 200
LOG_BYTES_MAX: Final = 2**20
"""Of what a container wrote: the last lines, as long as these are of a sensible length."""

STREAM_BYTES: Final = 128 * 1024
"""What is held of a command's output that nobody has taken yet."""


class Absent(Exception):
    """What was asked about is not there (404)."""


class Conflict(Exception):
    """It is there already, or something else is under way with it (409)."""


class EngineApi:
    """One engine."""

    def __init__(self, socket: str) -> None:
        self.socket = socket
        self._client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(
                uds=socket, limits=httpx.Limits(max_connections=CONNECTION_COUNT_MAX)
            ),
            base_url=f"http://engine/{VERSION}",
            # The engine cancels what takes too long: its own deadline is the one that counts.
            timeout=httpx.Timeout(None, connect=CONNECT_S_MAX),
        )

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        **params: str,
    ) -> Any:  # noqa: ANN401 - JSON of the engine
        """Make one call; return what its answer holds.

        Raises:
            Absent: 404.
            Conflict: 409.
            ProviderFailed: Anything else that is no success.
        """
        try:
            answer = await self._client.request(method, path, json=body, params=params or None)
        except httpx.ConnectError as error:
            raise self._unreachable() from error
        except httpx.TransportError as error:
            raise OutcomeUnknown(
                "the engine's answer was lost", call=f"{method} {path}", why=str(error)
            ) from error
        self._check(answer, f"{method} {path}")
        is_json = "json" in answer.headers.get("content-type", "")
        return json.loads(answer.content) if is_json and answer.content.strip() else None

    async def inspect(self, name: str) -> dict[str, Any] | None:
        """Return what there is to say about a container, `None` when it is not there."""
        try:
            found: dict[str, Any] = await self.call("GET", f"/containers/{name}/json")
        except Absent:
            return None
        return found

    async def logs(self, name: str, bytes_max: int) -> str:
        """Return the end of what a container's main process wrote; empty when it is not there."""
        path = f"/containers/{name}/logs"
        params = {"stdout": "true", "stderr": "true", "tail": str(LOG_LINES_MAX)}
        kept = b""
        try:
            async with self._client.stream("GET", path, params=params) as answer:
                if not answer.is_success:
                    return ""
                async for data in answer.aiter_bytes():
                    kept += data
                    if len(kept) > LOG_BYTES_MAX:
                        break
        except httpx.TransportError as error:
            raise OutcomeUnknown(
                "the engine's answer was lost", call=path, why=str(error)
            ) from error
        return _unframed(kept).decode(errors="replace")[-bytes_max:]

    async def kill(self, name: str) -> dict[str, Any] | None:
        """Kill a container if it runs still; return what is there then, `None` when it is gone."""
        with contextlib.suppress(Absent, Conflict):  # 409: it has ended by itself meanwhile
            await self.call("POST", f"/containers/{name}/kill")
        return await self.inspect(name)

    def _unreachable(self) -> ProviderFailed:
        if os.path.exists(self.socket) and not os.access(self.socket, os.R_OK | os.W_OK):  # noqa: PTH110 - a text
            return CredentialsRejected(
                "the engine's socket is not for us: let the server's user use it",
                socket=self.socket,
            )
        return CapacityUnavailable(
            "the engine does not listen: is it running?", scope="engine", socket=self.socket
        )

    def _check(self, answer: httpx.Response, call: str) -> None:
        if answer.is_success or answer.status_code == 304:
            return
        match _status(answer):
            case 404:
                raise Absent(_message(answer))
            case 409:
                raise Conflict(_message(answer))
            case 401 | 403:
                raise CredentialsRejected("the engine does not let us", why=_message(answer))
            case 429:
                raise Throttled("the engine is asked too often", retry_after_ms=THROTTLED_MS)
            case status if status < 500:
                raise RequestInvalid("the engine refuses the request", why=_message(answer))
            case _:
                raise CapacityUnavailable(
                    "the engine failed", scope="engine", call=call, why=_message(answer)
                )

    async def start_exec(self, exec_id: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Start a command and take its connection over: both ways, framed by stream.

        Raises:
            ProviderFailed: It was not started, or nobody knows.
        """
        try:
            reader, writer = await asyncio.open_unix_connection(self.socket, limit=STREAM_BYTES)
        except OSError as error:
            raise self._unreachable() from error
        body = b'{"Detach": false, "Tty": false}'
        head = (
            f"POST /{VERSION}/exec/{quote(exec_id, safe='')}/start HTTP/1.1\r\nHost: engine\r\n"
            "Content-Type: application/json\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        try:
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise OutcomeUnknown("the engine's answer was lost", why=str(error)) from error
        except asyncio.CancelledError:
            writer.close()
            raise
        status = answer.split(b" ", 2)[1:2]
        if status not in ([b"101"], [b"200"]):
            writer.close()
            raise CapacityUnavailable(
                "the engine does not start the command",
                scope="machine",
                status=b"".join(status).decode(errors="replace"),
            )
        return reader, writer

    async def pull(self, image: str) -> None:
        """Pull an image.

        Raises:
            ProviderFailed: It could not be had.
        """
        name, _, tag = image.partition("@")[0].rpartition(":")
        params = (
            {"fromImage": image}
            if "@" in image or not name or "/" in tag
            else {
                "fromImage": name,
                "tag": tag,
            }
        )
        problem = ""
        try:
            async with self._client.stream("POST", "/images/create", params=params) as answer:
                if not answer.is_success:
                    await answer.aread()
                    problem = _message(answer)
                else:
                    async for line in answer.aiter_lines():
                        with contextlib.suppress(ValueError):
                            problem = json.loads(line).get("error") or problem
        except httpx.ConnectError as error:
            raise self._unreachable() from error
        except httpx.TransportError as error:
            problem = str(error) or "the connection was lost"
        if problem:
            raise CapacityUnavailable(
                "the image cannot be pulled", scope="image", image=image, why=problem
            )


def _unframed(data: bytes) -> bytes:
    """Return what a log holds: pieces behind headers of eight bytes, the last four its length."""
    found = b""
    while len(data) > 8:
        end = 8 + int.from_bytes(data[4:8], "big")
        found += data[8:end]
        data = data[end:]
    return found


_PODMAN_STATUS: Final = {"no such container": 404, "container state improper": 409}
"""What Podman means by 500 while somebody else stops or removes the same container, by its cause
(libpod/define/errors.go)."""


def _status(answer: httpx.Response) -> int:
    if answer.status_code != 500:
        return answer.status_code
    try:
        told = json.loads(answer.content)
    except ValueError:
        return 500
    cause = told.get("cause") if isinstance(told, dict) else None
    return _PODMAN_STATUS.get(str(cause), 500)


def _message(answer: httpx.Response) -> str:
    try:
        told = json.loads(answer.content)
        return str(told.get("message") or told.get("cause") or told)
    except (ValueError, AttributeError):
        return answer.text[:200]
