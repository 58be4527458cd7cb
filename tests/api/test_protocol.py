"""The head of an answer leaves with its body, and never later than it must."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from hostler.api.protocol import HeadsHeld
from tests.api.lab import Lab

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Wire(asyncio.Transport):
    """Takes note of what is written at once, which a socket would not tell."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.written.append(b"".join(bytes(data) for data in list_of_data))

    def close(self) -> None:
        self.written.append(b"closed")


@pytest.fixture
def wire() -> Wire:
    return Wire()


async def test_a_head_leaves_with_its_body(wire: Wire) -> None:
    held = HeadsHeld(wire, asyncio.get_running_loop())
    for _ in range(2):
        held.write(HEAD)
        held.write(b"ok")
    await asyncio.sleep(0)
    assert wire.written == [HEAD + b"ok"] * 2


async def test_a_head_without_a_body_leaves_when_the_loop_goes_on(wire: Wire) -> None:
    held = HeadsHeld(wire, asyncio.get_running_loop())
    held.write(HEAD)
    assert wire.written == []
    await asyncio.sleep(0)
    assert wire.written == [HEAD]


async def test_pieces_of_a_stream_leave_at_once(wire: Wire) -> None:
    held = HeadsHeld(wire, asyncio.get_running_loop())
    held.write(HEAD)
    for piece in (b"one", b"two"):
        held.write(piece)
    assert wire.written == [HEAD + b"one", b"two"]


async def test_a_head_is_not_lost_when_the_connection_is_closed_behind_it(wire: Wire) -> None:
    held = HeadsHeld(wire, asyncio.get_running_loop())
    held.write(HEAD)
    held.close()
    assert wire.written == [HEAD, b"closed"]


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        pytest.param(
            b"HEAD /v1/leases HTTP/1.1\r\nhost: localhost\r\n\r\n", [b"405"], id="without a body"
        ),
        pytest.param(
            b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" * 3, [b"200"] * 3, id="pipelined"
        ),
        pytest.param(
            b"POST /v1/leases HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n"
            b"content-type: application/json\r\ncontent-length: 17\r\n\r\n"
            b'{"pool": "nope!"}',
            [b"100", b"404"],
            id="asked to go on",
        ),
    ],
)
async def test_odd_answers_come_whole(lab: Lab, sent: bytes, answers: list[bytes]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", lab.listening.port)
    writer.write(sent[:-1])
    writer.write(sent[-1:])
    for status in answers:
        async with asyncio.timeout(30):
            head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 " + status)
        length = [line for line in head.split(b"\r\n") if line.startswith(b"content-length")]
        if length and not sent.startswith(b"HEAD"):
            await reader.readexactly(int(length[0].split(b":")[1]))
    writer.close()
    await writer.wait_closed()
