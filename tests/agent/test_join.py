"""Joining a fleet: once, under one key, with patience for the server and none for a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from hostler.agent.link import BACKOFF_FIRST_S, Backoff, join, tls_context
from hostler.base.errors import Rejected
from hostler.wire.agent import JoinRequest, JoinResponse

REQUEST = JoinRequest(join_token="secret", hostname="h")
ACCEPTED = b'{"node_id":"n-1","credential":"c"}'


class Canned:
    """Answers each request with the next of its answers."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.requests: list[bytes] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        self.requests.append(head + await reader.readexactly(length))
        status, body = self.answers.pop(0)
        writer.write(
            b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
            % (status, len(body), body)
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def server() -> AsyncIterator[Canned]:
    canned = Canned()
    running = await asyncio.start_server(canned.serve, "127.0.0.1", 0)
    canned.url = f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}"
    async with running:
        yield canned


async def joined(url: str) -> JoinResponse:
    return await join(url, REQUEST, key="k-1", backoff=Backoff(0.001))


async def test_an_agent_joins_under_its_key(server: Canned) -> None:
    server.answers = [(201, ACCEPTED)]
    assert await joined(server.url + "/") == JoinResponse(node_id="n-1", credential="c")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/agent/join ")
    assert b"idempotency-key: k-1" in head.lower()
    assert msgspec.json.decode(body) == {"join_token": "secret", "hostname": "h"}


async def test_an_agent_waits_for_a_server_that_cannot_do_it_now(server: Canned) -> None:
    server.answers = [(503, b""), (429, b"{}"), (500, b"x"), (200, ACCEPTED)]
    assert (await joined(server.url)).node_id == "n-1"


async def test_a_refusal_is_final_and_says_what_the_server_said(server: Canned) -> None:
    problem = b'{"type":"about:blank","code":"token_expired","detail":"the join token is too old"}'
    server.answers = [(401, problem)]
    with pytest.raises(Rejected, match="too old") as refusal:
        await joined(server.url)
    assert refusal.value.code == "token_expired"
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(("status", "body"), [(404, b"<html>"), (200, b"<html>"), (200, b"{}")])
async def test_something_else_on_the_port_is_recognised(
    server: Canned, status: int, body: bytes
) -> None:
    server.answers = [(status, body)]
    with pytest.raises(Rejected):
        await joined(server.url)


def test_waits_double_up_to_the_ceiling_and_begin_anew() -> None:
    backoff = Backoff(1.0)
    waits = [backoff.take() for _ in range(8)]
    assert BACKOFF_FIRST_S / 2 <= waits[0] <= BACKOFF_FIRST_S
    assert all(0.5 <= wait <= 1.0 for wait in waits[-3:])
    backoff.reset()
    assert backoff.take() <= BACKOFF_FIRST_S


def test_only_https_needs_tls() -> None:
    assert tls_context("http://x", None) is None
    assert tls_context("https://x", None) is not None
