"""A server that cannot start says why in one clear message, and exits with a code that is not 0."""

import resource
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import CONFIGURATION, Cli, Ended, environment, start_server
from tests.disks import a_disk_of


def configuration(tmp_path: Path, text: str = CONFIGURATION) -> Path:
    file = tmp_path / "hostler.yaml"
    file.write_text(text)
    return file


def one_message(told: str) -> str:
    """Take the one message of a failed start, which is no traceback and no log."""
    lines = [line for line in told.splitlines() if not line.startswith("hint: ")]
    assert len(lines) == 1, told
    assert lines[0].startswith("hostler: ")
    return lines[0].removeprefix("hostler: ")


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of 64 KiB, where we may mount one."""
    with a_disk_of("64k") as folder:
        yield folder


def test_a_bad_configuration_is_told_whole_with_lines(cli: Cli, tmp_path: Path) -> None:
    file = configuration(tmp_path, "server: {port: x}\npools:\n  studio: {tiers: []}\nmore: 1\n")
    ended = cli("server", "-c", str(file))
    assert ended.code == 2
    assert ended.err.splitlines() == [
        f'{file}:1:10: server.port: expected a whole number, found text "x"',
        f"{file}:3:12: pools.studio.tiers: a pool needs at least one tier",
        (
            f"{file}:4:1: more: unknown key `more`;"
            " known here: fleet, server, pools, services, budgets"
        ),
        f"hostler: 3 problems in {file}",
    ]


def test_what_providers_find_wrong_is_told_with_lines(cli: Cli, tmp_path: Path) -> None:
    tier = "{name: %s, kind: elastic, provider: %s, node_count_max: 1, offers: [{name: o}]%s}"
    file = configuration(
        tmp_path,
        "pools:\n  p:\n    tiers:\n"
        f"      - {tier % ('t', 'lokal', '')}\n"
        f"      - {tier % ('u', 'local', ', options: {machine_max: 1}')}\n",
    )
    ended = cli("server", "-c", str(file))
    assert ended.code == 2
    first, second, last = ended.err.splitlines()
    assert first.startswith(f"{file}:4:")
    assert "did you mean local?" in first
    assert second.startswith(f"{file}:5:")
    assert "unknown key `machine_max`" in second
    assert last == f"hostler: 2 problems in {file}"
    assert sorted(tmp_path.iterdir()) == [file]


def test_a_configuration_that_is_not_there_is_told(cli: Cli, tmp_path: Path) -> None:
    ended = cli("server", "-c", str(tmp_path / "nope.yaml"))
    assert (ended.code, one_message(ended.err)) == (2, f"there is no file {tmp_path}/nope.yaml")


def test_a_taken_port_is_told_before_anything_is_made(cli: Cli, tmp_path: Path) -> None:
    file = configuration(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ended = cli("server", "-c", str(file), "--port", str(port))
    assert ended.code == 2
    assert f"port {port} on 127.0.0.1 is taken" in one_message(ended.err)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("bind", ["0.0.0.0", "203.0.113.7", "no.such.invalid"])
def test_an_address_beyond_this_machine_needs_a_certificate(
    cli: Cli, tmp_path: Path, bind: str
) -> None:
    ended = cli("server", "-c", str(configuration(tmp_path)), "--bind", bind)
    assert ended.code == 2
    assert "give `server.tls` a certificate" in one_message(ended.err)


def test_a_folder_that_cannot_be_made_is_told(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file stands here")
    ended = cli("server", "-c", str(configuration(tmp_path)))
    assert ended.code == 1
    assert "cannot make the data folder" in one_message(ended.err)
    assert "hint: choose another with --data" in ended.err


def test_a_key_that_others_can_read_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "server.key").write_bytes(bytes(32))
    (tmp_path / "data" / "server.key").chmod(0o644)
    ended = cli("server", "-c", str(configuration(tmp_path)))
    assert ended.code == 2
    assert "others can read the server's key" in one_message(ended.err)


def test_a_full_disk_is_told(small_disk: Path, tmp_path: Path) -> None:
    file = configuration(tmp_path)
    if small_disk.is_mount():
        before = None
        (small_disk / "filler").write_bytes(bytes(48 << 10))
    else:

        def before() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 10, 4 << 10))

    ended = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "hostler", "server"),
            *("-c", str(file), "--data", str(small_disk)),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment(),
        preexec_fn=before,
    )
    assert ended.returncode == 1
    message = one_message(ended.stderr)
    assert "disk of the store is full" in message or "does not answer as it should" in message


def test_a_store_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path, cli: Cli) -> None:
    first = start_server(tmp_path, CONFIGURATION)
    assert first.end() == 0
    path = tmp_path / "data" / "hostler.db"
    with sqlite3.connect(path) as database:
        database.execute("UPDATE alembic_version SET version_num = '0099'")
    database.close()
    before = path.read_bytes()
    ended = cli("server", "-c", str(tmp_path / "hostler.yaml"))
    assert ended.code == 2
    assert "newer" in one_message(ended.err)
    assert path.read_bytes() == before


def test_a_store_that_another_server_holds_is_told(tmp_path: Path, cli: Cli) -> None:
    first = start_server(tmp_path, CONFIGURATION)
    try:
        ended = cli("server", "-c", str(tmp_path / "hostler.yaml"))
        assert ended.code == 2
        assert "another server" in one_message(ended.err)
    finally:
        assert first.end() == 0


def fill(path: Path) -> None:
    """Leave no room on the disk of a file."""
    with suppress(OSError), path.open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))


@pytest.fixture
def large_disk() -> Iterator[Path]:
    """A disk of 2 MiB: room for a server's store, and for little more."""
    with a_disk_of("2m") as folder:
        yield folder


def test_a_disk_that_fills_up_later_refuses_changes_and_nothing_else(
    large_disk: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not large_disk.is_mount():
        return  # without a disk of its own this would fill the developer's
    bundle = tmp_path / "bundle.yaml"
    server = start_server(tmp_path, CONFIGURATION, "--data", str(large_disk / "data"))
    monkeypatch.setenv("HOSTLER_SERVER", server.url)
    try:
        ended = Ended(0, "", "")
        fill(large_disk / "filler")
        for number in range(50):
            bundle.write_text(BUNDLE.format(number=number))
            ended = cli("apply", "-f", str(bundle))
            if ended.code:
                break
        assert ended.code == 1
        assert one_message(ended.err).startswith("the disk of the store is full: free some room")
        assert cli("get", "bundles").code == 0
        (large_disk / "filler").unlink()
        assert cli("apply", "-f", str(bundle)).code == 0
        assert server.end() == 0
    finally:
        server.process.kill()


BUNDLE = "bundle: b{number}\npool: studio\njobs: [{{name: j, run: {{argv: [a]}}}}]\n"


def test_asking_twice_to_end_ends_at_once(tmp_path: Path) -> None:
    server = start_server(tmp_path, CONFIGURATION, "--ephemeral")
    server.process.send_signal(signal.SIGINT)
    assert server.end() in (0, -signal.SIGINT)
    assert "Traceback" not in server.log.read_text()
