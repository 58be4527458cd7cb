"""What a platform says before it takes a machine back, and how the server is told."""

import pytest

from hostler.agent.core.inputs import LinkClosed, LinkOpened, NoticeRead
from hostler.agent.notices import LEFT_MS_DEFAULT, parse_notice
from hostler.wire.agent import NoticeReported
from tests.agent.bench import Bench, a_welcome, sent

NOW_MS = 1_767_323_000_000
"""2026-01-02T03:03:20Z."""


@pytest.mark.parametrize(
    ("text", "kind", "left_ms"),
    [
        ('{"action": "terminate", "time": "2026-01-02T03:05:20Z"}', "terminate", 120_000),
        ('{"action": "stop", "time": "2026-01-02T03:00:00Z"}', "terminate", 0),
        ('{"noticeTime": "2026-01-02T03:00:00Z"}', "rebalance", 0),
        ('{"kind": "rebalance"}', "rebalance", 0),
        ('{"kind": "terminate", "left": "90s"}', "terminate", 90_000),
        ('{"kind": "terminate", "left": "soon"}', "terminate", LEFT_MS_DEFAULT),
        ('{"action": "terminate", "time": "never"}', "terminate", LEFT_MS_DEFAULT),
        ("TRUE\n", "terminate", LEFT_MS_DEFAULT),
        ("going down", "terminate", LEFT_MS_DEFAULT),
    ],
)
def test_a_notice_is_read(text: str, kind: str, left_ms: int) -> None:
    assert parse_notice(text, NOW_MS) == NoticeRead(kind=kind, left_ms=left_ms)  # type: ignore[arg-type]  # parametrised


@pytest.mark.parametrize("text", ["", " \n", "FALSE", "none", "null", "false", "0"])
def test_what_is_no_notice_is_none(text: str) -> None:
    assert parse_notice(text, NOW_MS) is None


def test_the_server_is_told_once_a_session() -> None:
    bench = Bench()
    bench.connect()
    notice = NoticeReported(kind="terminate", left_ms=120_000)
    assert notice in sent(bench.feed(NoticeRead(kind="terminate", left_ms=120_000)))
    bench.now_ms += 5_000
    again = sent(bench.feed(NoticeRead(kind="terminate", left_ms=115_200)))
    assert not [each for each in again if isinstance(each, NoticeReported)]
    bench.feed(LinkClosed())
    bench.feed(LinkOpened(session_id=None, received_seq=0))
    told = sent(bench.hear(a_welcome()))
    assert [each.left_ms for each in told if isinstance(each, NoticeReported)] == [115_000]


def test_a_worse_notice_or_an_earlier_end_is_told_anew() -> None:
    bench = Bench()
    bench.connect()
    for read in (
        NoticeRead(kind="rebalance", left_ms=0),
        NoticeRead(kind="terminate", left_ms=120_000),
        NoticeRead(kind="terminate", left_ms=60_000),
    ):
        told = sent(bench.feed(read))
        assert NoticeReported(kind=read.kind, left_ms=read.left_ms) in told
