"""The agent's end of the link: joins, connects, comes back after a break, and carries messages.

It decides nothing but when to try again. A connection is numbered by `LinkSession`; what is said
while there is none is kept by the session, and sent when it is resumed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol
from urllib.parse import urlsplit, urlunsplit

import httpx
import msgspec
import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, InvalidURI, WebSocketException

from hostler.agent.core.inputs import Input, LinkClosed, LinkOpened, MessageReceived, SessionLost
from hostler.agent.tasks import Tasks
from hostler.base.errors import Failed, Rejected
from hostler.wire.agent import (
    AGENT_JOIN_PATH,
    AGENT_LINK_PATH,
    AgentMessage,
    Hello,
    JoinRequest,
    JoinResponse,
    ServerMessage,
    Welcome,
)
from hostler.wire.link import (
    FRAME_BYTES_MAX,
    LinkBroken,
    LinkOverflow,
    LinkSession,
    decode_opening_from_server,
    opening_frame,
)

LOG: Final = structlog.get_logger("hostler.agent.link")

BACKOFF_FIRST_S: Final = 0.1
CONNECT_WITHIN_S: Final = 10.0
OUTGOING_FLUSH_S: Final = 2.0
"""How long the end of the agent waits for its last words to go out."""


class Backoff:
    """Waits that double up to a ceiling, with jitter so that a thousand agents do not come at once.

    The jitter is over the upper half only: nobody hammers, and nobody waits longer than said.
    """

    def __init__(self, ceiling_s: float) -> None:
        self._ceiling_s = ceiling_s
        self._next_s = BACKOFF_FIRST_S

    def take(self) -> float:
        """Give the next wait."""
        wait_s = min(self._next_s, self._ceiling_s)
        self._next_s = wait_s * 2
        return wait_s * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing

    def reset(self) -> None:
        """Begin again with short waits."""
        self._next_s = BACKOFF_FIRST_S


def tls_context(server_url: str, ca_file: str | None) -> ssl.SSLContext | None:
    """Make the TLS settings for an https server; `None` for plain http."""
    if urlsplit(server_url).scheme != "https":
        return None
    return ssl.create_default_context(cafile=ca_file)


async def join(
    server_url: str,
    request: JoinRequest,
    *,
    key: str,
    backoff: Backoff,
    tls: ssl.SSLContext | None = None,
) -> JoinResponse:
    """Become a node of the fleet; keeps trying while the server cannot be reached.

    Raises:
        Rejected: The server does not want us; the operator has to look at the join token.
    """
    url = server_url.rstrip("/") + AGENT_JOIN_PATH
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    async with httpx.AsyncClient(
        verify=True if tls is None else tls, timeout=CONNECT_WITHIN_S
    ) as client:
        while True:
            try:
                answer = await client.post(
                    url, content=msgspec.json.encode(request), headers=headers
                )
                return _joined(answer)
            except (httpx.TransportError, Failed) as error:
                wait_s = backoff.take()
                LOG.warning("cannot join yet", server=server_url, error=str(error), wait_s=wait_s)
                await asyncio.sleep(wait_s)


def _joined(answer: httpx.Response) -> JoinResponse:
    if answer.is_success:
        try:
            return msgspec.json.decode(answer.content, type=JoinResponse)
        except msgspec.MsgspecError as error:
            raise Rejected("join_answer_unreadable", "this is not a Hostler server") from error
    if answer.status_code >= 500 or answer.status_code in {408, 429}:
        raise Failed("join_failed", "the server cannot do it now", status=answer.status_code)
    try:
        problem = msgspec.json.decode(answer.content, type=dict[str, object])
    except msgspec.MsgspecError:
        problem = {}
    raise Rejected(
        str(problem.get("code", "join_refused")),
        str(problem.get("detail") or "the server refused to let this node join"),
        status=answer.status_code,
    )


def _hint(error: InvalidStatus, when_unknown: str) -> str:
    is_unknown = error.response.status_code in {401, 403}
    return when_unknown if is_unknown else "is this the address of a Hostler server?"


class Wire(Protocol):
    """An open connection to the server: texts both ways, in order."""

    def __aiter__(self) -> AsyncIterator[str | bytes]:
        """Yield what the server sends, to the end of the connection."""
        ...

    async def send(self, text: str) -> None:
        """Send a text."""
        ...

    def abort(self) -> None:
        """End the connection without a word."""
        ...


Dial = Callable[[], AbstractAsyncContextManager[Wire]]
"""Opens a connection to the server for the time of a block."""


class _WebSocket:
    """A `Wire` that is a WebSocket."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.send: Callable[[str], Coroutine[Any, Any, None]] = connection.send

    def __aiter__(self) -> AsyncIterator[str | bytes]:
        return aiter(self._connection)

    def abort(self) -> None:
        # A peer that does not answer would make a closing handshake wait.
        self._connection.transport.abort()


def websocket_dial(server_url: str, credential: str, tls: ssl.SSLContext | None = None) -> Dial:
    """Return what opens WebSockets to a server, as the agent that the credential says."""
    parts = urlsplit(server_url.rstrip("/") + AGENT_LINK_PATH)
    url = urlunsplit(parts._replace(scheme={"https": "wss"}.get(parts.scheme, "ws")))

    @contextlib.asynccontextmanager
    async def dial() -> AsyncIterator[Wire]:
        try:
            connecting = connect(
                url,
                additional_headers={"Authorization": f"Bearer {credential}"},
                ssl=tls,
                compression=None,
                max_size=FRAME_BYTES_MAX,
                open_timeout=CONNECT_WITHIN_S,
                close_timeout=1,
                # Our own heartbeat watches over the connection.
                ping_interval=None,
            )
        except InvalidURI as error:
            raise LinkBroken("server_url_bad", "this is no address of a server") from error
        async with connecting as connection:
            yield _WebSocket(connection)

    return dial


class AgentLink:
    """Keeps a connection to the server for as long as it runs."""

    def __init__(
        self,
        dial: Dial,
        post: Callable[[Input], None],
        tasks: Tasks,
        *,
        backoff: Backoff,
        when_unknown: str = "it does not know us",
    ) -> None:
        """Make a link that is not open yet.

        Args:
            dial: Opens a connection.
            post: Takes what is heard.
            tasks: Where the link runs.
            backoff: The waits between attempts.
            when_unknown: What a person can do when the server does not take our credential.
        """
        self._dial = dial
        self._post = post
        self._tasks = tasks
        self._backoff = backoff
        self._when_unknown = when_unknown
        self._session: LinkSession | None = None
        self._connection: Wire | None = None
        self._is_welcome = False
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to connect."""
        self._task = self._tasks.start(self._run())

    def send(self, message: AgentMessage) -> None:
        """Say something: now if there is a connection, else when the session is resumed."""
        if isinstance(message, Hello):
            self._outgoing.put_nowait(opening_frame(message))
            return
        if self._session is None:
            return
        try:
            text = self._session.send(message)
        except LinkOverflow as error:
            LOG.warning("session given up", error=str(error))
            self._session = None
            self._is_welcome = False
            self._post(SessionLost())
            return
        if self._is_welcome:
            self._outgoing.put_nowait(text)

    def reconnect(self, reason: str) -> None:
        """Leave this connection and make another."""
        connection = self._connection
        if connection is not None:
            LOG.info("reconnecting", reason=reason)
            connection.abort()

    def disconnect(self, reason: str) -> None:
        """Leave this connection and make no other."""
        LOG.warning("disconnected for good", reason=reason)
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Let what was said go out, then leave."""
        if self._is_welcome:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(OUTGOING_FLUSH_S):
                    await self._outgoing.join()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self._connect_once()
            except InvalidStatus as error:
                LOG.warning(
                    "the server does not let us in",
                    error=str(error),
                    hint=_hint(error, self._when_unknown),
                )
            except (OSError, TimeoutError, WebSocketException, LinkBroken) as error:
                LOG.info("link broken", error=str(error) or type(error).__name__)
            await asyncio.sleep(self._backoff.take())

    async def _connect_once(self) -> None:
        async with self._dial() as connection:
            self._connection = connection
            self._outgoing = asyncio.Queue()
            session = self._session
            self._post(
                LinkOpened(
                    session_id=None if session is None else session.session_id,
                    received_seq=0 if session is None else session.received_seq,
                )
            )
            writing = asyncio.get_running_loop().create_task(self._write(connection))
            try:
                async for text in connection:
                    self._take(text)
            finally:
                self._connection = None
                self._is_welcome = False
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)
                self._post(LinkClosed())

    async def _write(self, connection: Wire) -> None:
        while True:
            text = await self._outgoing.get()
            await connection.send(text)
            self._outgoing.task_done()

    def _take(self, text: str | bytes) -> None:
        message: ServerMessage | None
        if self._is_welcome and self._session is not None:
            message = self._session.receive_from_server(text)
            acknowledgement = self._session.ack_due()
            if acknowledgement is not None:
                self._outgoing.put_nowait(acknowledgement)
        else:
            message = decode_opening_from_server(text)
            if isinstance(message, Welcome):
                self._welcomed(message)
        if message is not None:
            self._post(MessageReceived(message=message))

    def _welcomed(self, message: Welcome) -> None:
        self._backoff.reset()
        self._is_welcome = True
        session = self._session
        if session is not None and session.session_id == message.session_id:
            for text in session.resume(message.received_seq):
                self._outgoing.put_nowait(text)
        else:
            self._session = LinkSession(message.session_id)
