"""`hostler get audit`: who changed what, from where, and who was refused."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from hostler.base.errors import Rejected
from hostler.base.units import duration_ms
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.event_lines import told
from hostler.cli.output import Column, OutputFormat, say_data, say_table
from hostler.cli.terminal import note, say

if TYPE_CHECKING:
    from hostler.client import SyncClient
    from hostler.wire.http import AuditView

SHOWN_COUNT: Final = 100
"""Entries shown when nothing says since when."""

SHOWN_COUNT_MAX: Final = 20_000


def say_audit(
    client: SyncClient,
    output: OutputFormat,
    *,
    by: str | None,
    subject: str | None,
    since: str | None,
    until: str | None,
    watch: bool,
    now_ms: int,
) -> None:
    """Write entries, the oldest first so that the newest is where the eye is; with `watch`, go on.

    Raises:
        CommandError: `since` or `until` is no instant.
    """
    found = client.audit(
        by=by,
        subject=subject,
        since_at_ms=_instant(since, now_ms, "--since"),
        until_at_ms=_instant(until, now_ms, "--until"),
        count=SHOWN_COUNT_MAX if since else SHOWN_COUNT,
    )
    found.reverse()
    if watch:
        _say_each(found, output)
        newest = found[-1:] or client.audit(count=1)
        last = newest[0].audit_id if newest else "u-0"
        while True:
            more = client.audit_after(last, by=by, subject=subject)
            _say_each(more, output)
            last = more[-1].audit_id if more else last
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data({"items": found}, output)
    elif output is OutputFormat.NAME:
        for entry in found:
            say(f"audit/{entry.audit_id}")
    elif not found:
        note("nobody has changed anything" if not (by or subject or since) else "no entry is such")
    else:
        say_table(found, _COLUMNS, now_ms=now_ms, is_wide=output is OutputFormat.WIDE)


def _say_each(entries: Iterable[AuditView], output: OutputFormat) -> None:
    """Write entries as they come, a line or a document each."""
    import msgspec

    for entry in entries:
        match output:
            case OutputFormat.JSON:
                say(msgspec.json.encode(entry).decode())
            case OutputFormat.YAML:
                say("---")
                say_data(entry, output)
            case OutputFormat.NAME:
                say(f"audit/{entry.audit_id}")
            case OutputFormat.TABLE | OutputFormat.WIDE:
                who = f"{entry.principal or '?'} from {entry.remote or '-'}"
                say(f"{_when(entry)}  {who}  {_what(entry)}  {_about(entry)}  {_with(entry)}")
        sys.stdout.flush()


def _instant(text: str | None, now_ms: int, flag: str) -> int | None:
    """Read how long ago (`2h`), a day (`2026-11-30`, in UTC), or an instant (RFC 3339).

    Raises:
        CommandError: It is none of them.
    """
    if text is None:
        return None
    try:
        return now_ms - duration_ms(text)
    except Rejected:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise CommandError(
            f"{flag} takes how long ago (2h), a day (2026-11-30) or an instant"
            f" (2026-11-30T08:00:00Z), not {text}",
            code=ExitCode.BAD_INPUT,
        ) from error
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000)


def _when(entry: AuditView) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at_ms / 1_000))


def _what(entry: AuditView) -> str:
    if entry.outcome != "refused":
        return entry.action
    times = f" x{entry.count}" if entry.count > 1 else ""
    return f"refused ({entry.code}){times}: {entry.action}"


def _about(entry: AuditView) -> str:
    """Write what it is about; what it changed, where the request names nothing."""
    if entry.about:
        return " ".join(f"{noun}/{name}" for noun, name in entry.about.items())
    more = entry.changed_count - len(entry.changed)
    return " ".join((*entry.changed, *([f"and {more} more"] if more else [])))


def _with(entry: AuditView) -> str:
    return " ".join(told(name, value) for name, value in entry.data.items())


_COLUMNS: Final[tuple[Column[AuditView], ...]] = (
    Column("AT", _when),
    Column("BY", lambda view: view.principal or "?"),
    Column("FROM", lambda view: view.remote),
    Column("WHAT", _what, is_state=True),
    Column("ABOUT", _about),
    Column("WITH", _with),
    Column("ENTRY", lambda view: view.audit_id, is_wide=True),
    Column("TOKEN", lambda view: view.token_id, is_wide=True),
    Column("REQUEST", lambda view: view.request_id, is_wide=True),
    Column("EVENTS AFTER", lambda view: view.event_seq, is_wide=True),
)
