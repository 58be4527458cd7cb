"""Ready checks as commands: run for real, against ports and pages that are there or are not."""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.engine.translate.ready import ready_check
from hostler.wire.documents.ready import HttpReadyDocument, ReadyDocument


class _Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def status(document: ReadyDocument, *, path: str | None = None) -> int:
    """Run a check and return its exit code."""
    env = {**os.environ, **({} if path is None else {"PATH": path})}
    argv = ready_check(document).argv
    return subprocess.run(argv, env=env, capture_output=True, check=False, timeout=30).returncode


def only(folder: Path, *names: str) -> str:
    """Return a folder that has these programs and no others."""
    for name in names:
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is not here")
        (folder / name).symlink_to(found)
    return str(folder)


def test_a_port_that_accepts_passes_and_one_that_does_not_fails(port: int) -> None:
    assert status(ReadyDocument(tcp=port)) == 0
    assert status(ReadyDocument(tcp=1)) != 0


def test_a_page_passes_by_its_status(port: int) -> None:
    assert status(ReadyDocument(http=HttpReadyDocument(port=port, path="/healthz"))) == 0
    assert status(ReadyDocument(http=HttpReadyDocument(port=port, path="/other"))) != 0
    assert status(ReadyDocument(http=HttpReadyDocument(port=1))) != 0


@pytest.mark.parametrize("program", ["bash", "curl", "wget"])
def test_whatever_the_machine_has_for_a_page_is_used(
    port: int, program: str, tmp_path: Path
) -> None:
    path = only(tmp_path, program)
    good = ReadyDocument(http=HttpReadyDocument(port=port, path="/healthz"))
    bad = ReadyDocument(http=HttpReadyDocument(port=port, path="/other"))
    assert status(good, path=path) == 0
    assert status(bad, path=path) != 0


def test_a_machine_that_has_nothing_to_ask_with_fails(port: int, tmp_path: Path) -> None:
    assert status(ReadyDocument(tcp=port), path=str(tmp_path)) == 1


def test_a_check_is_told_in_words() -> None:
    assert ready_check(ReadyDocument(tcp=22)).told == "tcp 22"
    assert ready_check(ReadyDocument(command=["test", "-e", "/a b"])).told == "test -e '/a b'"
    page = HttpReadyDocument(port=80, path="/up")
    assert ready_check(ReadyDocument(http=page)).told == "http 80/up"
