"""Reading logs: tails, rotation under the reader's feet, and an end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hostler.agent.credit import CreditGate
from hostler.agent.logs import LogFiles, read_log
from hostler.agent.supervisor import Log
from hostler.wire.agent import STREAM_CHUNK_BYTES_MAX, STREAM_WINDOW_BYTES


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # A supervisor works in its folder.
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def whole(folder: Path, tail_bytes: int | None = None) -> bytes:
    gate = CreditGate()
    data = b""
    async for each in read_log(
        folder, tail_bytes=tail_bytes, is_followed=False, has_ended=lambda: False, gate=gate
    ):
        data += each
        gate.credited(len(each))
    return data


async def test_there_is_no_log_before_there_is_output(folder: Path) -> None:
    assert await whole(folder) == b""


@pytest.mark.parametrize("tail_bytes", [0, 1, 9, 10, 11, 25, 30, 1_000])
async def test_a_tail_reaches_across_files(folder: Path, tail_bytes: int) -> None:
    log = Log(10, 4)
    written = bytes(range(33))
    log.write(written)
    assert await whole(folder) == written
    assert await whole(folder, tail_bytes) == written[max(0, 33 - tail_bytes) :]


async def test_one_file_is_enough_for_a_log(folder: Path) -> None:
    log = Log(10, 1)
    log.write(b"0123456789abc")
    assert await whole(folder) == b"abc"
    assert [each.name for each in folder.iterdir()] == ["log"]


def test_nothing_is_lost_to_a_rotation_while_reading(folder: Path) -> None:
    log = Log(4, 3)
    log.write(b"aaaabbbb")
    files = LogFiles(folder)
    files.open_newer()
    assert files.read(2) == b"aa"
    log.write(b"ccccdddd")
    assert not (folder / "log.3").exists()
    data = b""
    while piece := files.read(100):
        data += piece
        files.open_newer()
    assert data == b"aabbbbccccdddd"
    files.close()


def test_a_reader_that_was_too_slow_goes_on_with_the_oldest_that_is_left(folder: Path) -> None:
    log = Log(4, 2)
    log.write(b"aaaa")
    files = LogFiles(folder)
    files.open_newer()
    log.write(b"bbbbccccdddd")
    assert files.read(100) == b"aaaa"
    assert files.open_newer()
    assert files.read(100) == b"cccc"
    assert files.read(100) == b"dddd"
    files.close()


async def test_a_follower_waits_for_more_and_ends_with_the_job(folder: Path) -> None:
    log = Log(100, 2)
    has_ended = False
    gate = CreditGate()
    seen = b""
    stream = read_log(
        folder, tail_bytes=None, is_followed=True, has_ended=lambda: has_ended, gate=gate
    )
    log.write(b"one")
    async for each in stream:
        seen += each
        if seen == b"one":
            log.write(b"two")
            has_ended = True
    assert seen == b"onetwo"


async def test_a_gate_lets_nobody_pass_without_room() -> None:
    gate = CreditGate()
    reserved = 0
    while gate.has_room:
        reserved += await gate.reserve()
    assert reserved == STREAM_WINDOW_BYTES
    waiting = asyncio.ensure_future(gate.reserve())
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.credited(5)
    assert await waiting == 5
    gate.abandon()
    assert await gate.reserve() == STREAM_CHUNK_BYTES_MAX
