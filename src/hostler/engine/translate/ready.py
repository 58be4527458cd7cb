"""Ready checks: each kind as a command that any machine can run, with an agent of ours or without.

A port and a page are asked for on the machine itself, by whatever it has for that.
"""

from __future__ import annotations

import shlex
from typing import Final

from hostler.base.redact import redacted
from hostler.base.units import duration_ms
from hostler.model.ready import ReadyCheck
from hostler.wire.documents.ready import ReadyDocument

TOLD_CHARS_MAX: Final = 200
"""Of a command, where a node says what it waits for."""

_TCP: Final = """\
if command -v bash >/dev/null 2>&1; then exec bash -c '>"/dev/tcp/127.0.0.1/$0"' "$1"; fi
if command -v nc >/dev/null 2>&1; then exec nc -z -w 5 127.0.0.1 "$1"; fi
echo "a tcp check needs bash or nc on the machine" >&2
exit 1
"""

_HTTP: Final = """\
url="http://127.0.0.1:$1$2"
if command -v curl >/dev/null 2>&1; then exec curl -fsS -o /dev/null "$url"; fi
if command -v wget >/dev/null 2>&1; then exec wget -q -O /dev/null "$url"; fi
if command -v bash >/dev/null 2>&1; then exec bash -c '
  exec 3<>"/dev/tcp/127.0.0.1/$0" || exit 1
  printf "GET %s HTTP/1.0\\r\\nHost: 127.0.0.1:%s\\r\\n\\r\\n" "$1" "$0" >&3
  read -r _ status _ <&3
  echo "the page answered with status ${status:-none}" >&2
  test "${status:-0}" -ge 200 -a "${status:-0}" -lt 400' "$1" "$2"; fi
echo "an http check needs curl, wget or bash on the machine" >&2
exit 1
"""


def ready_check(document: ReadyDocument) -> ReadyCheck:
    """Read a pool's ready check."""
    argv, told = _command(document)
    return ReadyCheck(
        argv=argv,
        told=told,
        interval_ms=duration_ms(document.interval),
        timeout_ms=duration_ms(document.timeout),
        deadline_ms=duration_ms(document.deadline),
        success_count=document.successes,
    )


def _command(document: ReadyDocument) -> tuple[tuple[str, ...], str]:
    if document.tcp is not None:
        return ("/bin/sh", "-c", _TCP, "tcp", str(document.tcp)), f"tcp {document.tcp}"
    if document.http is not None:
        port, path = str(document.http.port), document.http.path
        return ("/bin/sh", "-c", _HTTP, "http", port, path), f"http {port}{path}"
    return tuple(document.command), redacted(shlex.join(document.command))[:TOLD_CHARS_MAX]
