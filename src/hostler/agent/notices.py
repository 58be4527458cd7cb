"""Looks for the platform's word that this machine is about to be taken back.

A file or an HTTP address is looked at every few seconds. There is no notice while it is missing,
empty or answers with an error. Otherwise it is one of these:

- `{"action": "terminate", "time": "2026-01-02T03:04:05Z"}`, as the metadata service of AWS has it
  (`stop` and `hibernate` are as good as an end);
- `{"noticeTime": "..."}`: a rebalance recommendation of AWS;
- `{"kind": "terminate", "left": "90s"}` or `{"kind": "rebalance"}`, for whoever writes their own;
- `TRUE`, as Google's metadata service has it, or any other word: it ends soon. `FALSE` and `NONE`
  are no notice.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import structlog

from hostler.agent.core.inputs import Input, NoticeRead
from hostler.base.errors import HostlerError
from hostler.base.units import duration_ms

LOG: Final = structlog.get_logger("hostler.agent.notices")

LEFT_MS_DEFAULT: Final = 30_000
"""Time left where a platform does not say: the least that the large ones give."""

LOOK_S: Final = 5.0
"""Between two looks: what AWS recommends."""

TIMEOUT_S: Final = 2.0
"""Of one look; a metadata service is on the same host."""

BYTES_MAX: Final = 65_536
"""Of one answer; more is no notice."""


class NoticeSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where notices are found; with neither there are none."""

    file: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    """Sent with each request, such as `Metadata-Flavor: Google`."""

    @property
    def is_given(self) -> bool:
        """True when there is something to look at."""
        return self.file is not None or self.url is not None


def parse_notice(text: str, now_ms: int) -> NoticeRead | None:
    """Read what a source says; `None` when it is no notice.

    Args:
        text: The file's or the answer's content.
        now_ms: Wall clock of this machine, for those who name an instant.
    """
    text = text.strip()
    if not text or text.upper() in ("FALSE", "NONE", "NULL"):
        return None
    try:
        found: Any = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return NoticeRead(kind="terminate", left_ms=LEFT_MS_DEFAULT)
    if not isinstance(found, dict):
        return NoticeRead(kind="terminate", left_ms=LEFT_MS_DEFAULT) if found else None
    if found.get("kind") == "rebalance" or "noticeTime" in found:
        return NoticeRead(kind="rebalance", left_ms=0)
    return NoticeRead(kind="terminate", left_ms=_left_ms(found, now_ms))


def _left_ms(found: Mapping[str, Any], now_ms: int) -> int:
    try:
        if "time" in found:
            at = dt.datetime.fromisoformat(str(found["time"]))
            at = at if at.tzinfo is not None else at.replace(tzinfo=dt.UTC)
            return max(0, int(at.timestamp() * 1_000) - now_ms)
        if "left" in found:
            return duration_ms(str(found["left"]))
    except (ValueError, OverflowError, HostlerError):
        LOG.warning("the time of a notice cannot be read", notice=dict(found))
    return LEFT_MS_DEFAULT


async def watch(source: NoticeSource, post: Callable[[Input], None]) -> None:
    """Look for notices until cancelled."""
    told_kind = ""
    async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client:
        while True:
            for text in (_in_file(source), await _at_url(source, client)):
                notice = parse_notice(text, time.time_ns() // 1_000_000)
                if notice is None:
                    continue
                if notice.kind != told_kind:
                    told_kind = notice.kind
                    LOG.warning("this machine is wanted back", **msgspec.structs.asdict(notice))
                post(notice)
            await asyncio.sleep(LOOK_S)


def _in_file(source: NoticeSource) -> str:
    """Give what the file says; one that cannot be read says nothing."""
    if source.file is None:
        return ""
    try:
        with Path(source.file).open("rb") as file:
            return file.read(BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""


async def _at_url(source: NoticeSource, client: httpx.AsyncClient) -> str:
    """Give what the address says; an error, or nobody there, says nothing."""
    if source.url is None:
        return ""
    try:
        answer = await client.get(source.url, headers=source.headers)
    except (httpx.HTTPError, httpx.InvalidURL):
        return ""
    return answer.text if answer.is_success and len(answer.content) <= BYTES_MAX else ""
