"""Requests to a fleet in the same process: the server's own handlers, called without a network.

They are called as the ASGI specification says (https://asgi.readthedocs.io), so everything that
holds over HTTP holds here: the same documents, checks, refusals and streams.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlencode

from litestar import Litestar

from hostler.api.context import CALLER_KEY, Caller
from hostler.client.call import Call
from hostler.client.errors import ClientError, Unreachable, refusal
from hostler.client.transport import RETRY_MS, Frames, FramesEnded, Transport
from hostler.embedded.pipe import Pipe, PipeEnded

T = TypeVar("T")

Message = dict[str, Any]

_ASGI: Final = {"version": "3.0", "spec_version": "2.4"}
_HOST: Final = (b"host", b"localhost")


class InProcessTransport(Transport):
    """One fleet in this process, and who we are there."""

    def __init__(self, app: Litestar, caller: Caller, url: str) -> None:
        self.url = url
        self.retry_ms = RETRY_MS
        self._app: Any = app
        self._caller = caller
        self._is_closed = False

    async def close(self) -> None:
        """Take no more requests."""
        self._is_closed = True
        self.retry_ms = 0

    async def send_once(self, call: Call[T]) -> bytes:
        """See `Transport.send_once`."""
        headers = []
        if call.body is not None:
            headers.append((b"content-type", b"application/json"))
        if call.idempotency_key:
            headers.append((b"idempotency-key", call.idempotency_key.encode()))
        path, _, query = call.path.partition("?")
        scope = self._scope("http", path, query or urlencode(call.params), headers)
        scope |= {"method": call.method, "scheme": "http"}
        answer = _Answer(call.body or b"")
        await self._app(scope, answer.receive, answer.send)
        body = b"".join(answer.parts)
        if answer.status >= 400:
            raise refusal(answer.status, body)
        return body

    @asynccontextmanager
    async def stream(
        self, path: str, params: dict[str, str], headers: dict[str, str]
    ) -> AsyncIterator[_StreamedAnswer]:
        """See `Transport.stream`."""
        given = [(name.lower().encode(), text.encode()) for name, text in headers.items()]
        scope = self._scope("http", path, urlencode(params), given)
        scope |= {"method": "GET", "scheme": "http"}
        answer = _StreamedAnswer()
        serving = asyncio.create_task(self._app(scope, answer.receive, answer.send))
        serving.add_done_callback(lambda _: answer.end())
        try:
            status = await answer.begun()
            if status >= 400:
                raise refusal(status, b"".join([part async for part in answer.aiter_raw()]))
            yield answer
        finally:
            answer.end()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    async def connect(self, path: str, params: dict[str, str]) -> Frames:
        """See `Transport.connect`."""
        scope = self._scope("websocket", path, urlencode(params), ())
        scope |= {
            "scheme": "ws",
            "subprotocols": [],
            "extensions": {"websocket.http.response": {}},
        }
        frames = _InProcessFrames()
        frames.serve(self._app(scope, frames.take, frames.give))
        try:
            await frames.open(self.url)
        except BaseException:
            await frames.close()
            raise
        return frames

    def _scope(
        self, kind: str, path: str, query: str, headers: Iterable[tuple[bytes, bytes]]
    ) -> Message:
        if self._is_closed:
            raise Unreachable(self.url, "the fleet is closed")
        return {
            "type": kind,
            "asgi": _ASGI,
            "http_version": "1.1",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [_HOST, *headers],
            "server": ("localhost", None),
            "client": None,
            CALLER_KEY: self._caller,
        }


class _Answer:
    """One request, and its answer as a whole."""

    def __init__(self, body: bytes) -> None:
        self.status = 500
        self.parts: list[bytes] = []
        self._body: bytes | None = body

    async def receive(self) -> Message:
        """Give the request's body; then nothing ever follows."""
        if self._body is None:
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        """Take a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.parts.append(message.get("body", b""))


class _StreamedAnswer:
    """An answer that is read as it comes."""

    def __init__(self) -> None:
        self._parts: Pipe[bytes] = Pipe()
        self._status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._gone = asyncio.Event()
        self._is_asked = False

    async def begun(self) -> int:
        """Return the status."""
        return await self._status

    def end(self) -> None:
        """Nothing follows, or nobody reads any more."""
        self._gone.set()
        self._parts.end()
        if not self._status.done():
            self._status.set_result(500)

    async def receive(self) -> Message:
        """Give the empty body, and word when nobody reads any more."""
        if not self._is_asked:
            self._is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a part of the answer; waits while the reader does not take it."""
        if message["type"] == "http.response.start":
            if not self._status.done():
                self._status.set_result(message["status"])
            return
        if body := message.get("body", b""):
            await self._parts.put(body)
        if not message.get("more_body", False):
            self.end()

    async def aiter_raw(self) -> AsyncIterator[bytes]:
        """Yield its bytes."""
        while (part := await self._parts.get()) is not None:
            yield part

    async def aiter_lines(self) -> AsyncIterator[str]:
        """Yield its lines, without their ends."""
        decoder, rest = codecs.getincrementaldecoder("utf-8")(), ""
        async for part in self.aiter_raw():
            *lines, rest = (rest + decoder.decode(part)).split("\n")
            for line in lines:
                yield line
        if rest:
            yield rest


class _InProcessFrames:
    """Frames to a handler of WebSockets in this process."""

    def __init__(self) -> None:
        self._to_handler: Pipe[Message] = Pipe()
        self._from_handler: Pipe[Message] = Pipe()
        self._serving: asyncio.Task[None] | None = None

    def serve(self, handling: Coroutine[Any, Any, None]) -> None:
        """Have the handler run beside us."""
        self._serving = asyncio.create_task(handling)
        self._serving.add_done_callback(lambda _: self._end())

    def _end(self) -> None:
        self._to_handler.end()
        self._from_handler.end()

    async def take(self) -> Message:
        """Give the handler what we sent."""
        return await self._to_handler.get() or {"type": "websocket.disconnect", "code": 1005}

    async def give(self, message: Message) -> None:
        """Take what the handler sends."""
        await self._from_handler.put(message)

    async def open(self, url: str) -> None:
        """Wait until the handler accepts.

        Raises:
            ClientError: It refuses.
            Unreachable: It ended without a word.
        """
        await self._to_handler.put({"type": "websocket.connect"})
        match await self._from_handler.get():
            case {"type": "websocket.accept"}:
                return
            case {"type": "websocket.http.response.start", "status": status}:
                raise await self._refusal(status)
            case _:
                raise Unreachable(url, "the fleet refused the connection")

    async def _refusal(self, status: int) -> ClientError:
        body = b""
        while (message := await self._from_handler.get()) is not None:
            body += message.get("body", b"")
        return refusal(status, body)

    async def send(self, text: str) -> None:
        """See `Frames.send`."""
        try:
            await self._to_handler.put({"type": "websocket.receive", "text": text})
        except PipeEnded:
            return  # why it closed is told to whoever reads

    async def receive(self) -> str | bytes:
        """See `Frames.receive`."""
        match await self._from_handler.get():
            case {"type": "websocket.send", "text": str(text)}:
                return text
            case {"type": "websocket.close", "reason": str(why)}:
                raise FramesEnded(why)
            case _:
                raise FramesEnded

    async def close(self) -> None:
        """See `Frames.close`."""
        self._end()
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
