"""Requests over HTTP, to a server on this host or elsewhere."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from hostler.client.call import Call
from hostler.client.errors import refusal, unreachable
from hostler.client.transport import RETRY_MS, TIMEOUT_MS, Frames, FramesEnded, Transport

T = TypeVar("T")


class HttpTransport(Transport):
    """A server that is reached over the network."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        tls_ca: Path | None = None,
        timeout_ms: int = TIMEOUT_MS,
        retry_ms: int = RETRY_MS,
    ) -> None:
        self.url = url.rstrip("/")
        self.retry_ms = retry_ms
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._ssl = ssl.create_default_context(cafile=tls_ca) if url.startswith("https") else None
        self._timeout_ms = timeout_ms
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers=self._headers,
            verify=self._ssl or False,
            timeout=timeout_ms / 1000,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=False,  # a proxy of the environment must not see tokens for loopback
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def send_once(self, call: Call[T]) -> bytes:
        """See `Transport.send_once`."""
        headers = {}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if call.idempotency_key:
            headers["Idempotency-Key"] = call.idempotency_key
        try:
            answer = await self._http.request(
                call.method,
                call.path,
                params=call.params,
                content=call.body,
                headers=headers,
                timeout=(self._timeout_ms + call.wait_ms) / 1000,
            )
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from error
        if answer.status_code >= 400:
            raise refusal(answer.status_code, answer.content)
        return answer.content

    @asynccontextmanager
    async def stream(
        self, path: str, params: dict[str, str], headers: dict[str, str]
    ) -> AsyncIterator[httpx.Response]:
        """See `Transport.stream`."""
        timeout = httpx.Timeout(self._timeout_ms / 1000, read=None)
        try:
            async with self._http.stream(
                "GET", path, params=params, headers=headers, timeout=timeout
            ) as answer:
                if answer.status_code >= 400:
                    raise refusal(answer.status_code, await answer.aread())
                yield answer
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from error

    async def connect(self, path: str, params: dict[str, str]) -> Frames:
        """See `Transport.connect`."""
        url = self.url.replace("http", "ws", 1)
        try:
            socket = await connect(
                f"{url}{path}?{urlencode(params)}",
                additional_headers=self._headers,
                ssl=self._ssl,
                max_size=None,
                compression=None,
                proxy=None,
            )
        except InvalidStatus as error:
            raise refusal(error.response.status_code, bytes(error.response.body or b"")) from error
        except (InvalidHandshake, OSError) as error:
            raise unreachable(self.url, error) from error
        return _WebSocket(socket)


class _WebSocket:
    """The frames of a WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, text: str) -> None:
        """See `Frames.send`."""
        try:
            await self._socket.send(text)
        except ConnectionClosed:
            return  # why it closed is told to whoever reads

    async def receive(self) -> str | bytes:
        """See `Frames.receive`."""
        try:
            return await self._socket.recv()
        except ConnectionClosed as error:
            raise FramesEnded((error.rcvd.reason if error.rcvd else "") or "") from error

    async def close(self) -> None:
        """See `Frames.close`."""
        await self._socket.close()
