"""`hostler config check` finds what a server would refuse; `config reload` shows, asks, applies."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import CONFIGURATION, Cli, ServerProcess, start_server
from tests.eventually import eventually

WINDOWED = """\
pools:
  runners:
    tiers:
      - {name: t, kind: elastic, provider: %s, node_count_max: 4, offers: [{name: o}]%s}
    windows:
      - {name: day, time_zone: %s, days: [daily], start: "09:00", end: "17:00", warm: 2}
"""


def checked(cli: Cli, folder: Path, *filled: str) -> tuple[int, str, str]:
    file = folder / "hostler.yaml"
    file.write_text(WINDOWED % filled)
    ended = cli("config", "check", str(file))
    return ended.code, ended.out, ended.err


def test_a_check_tells_when_each_window_comes_next(cli: Cli, tmp_path: Path) -> None:
    code, out, _ = checked(cli, tmp_path, "local", "", "Europe/Berlin")
    assert code == 0
    good, line = out.splitlines()
    assert good.endswith("is good: 1 pool, 1 tier")
    assert line.startswith("  runners: day comes ")
    assert "09:00 to 17:00 (Europe/Berlin)" in line


def test_a_check_knows_zones_and_the_options_of_providers(cli: Cli, tmp_path: Path) -> None:
    code, out, err = checked(cli, tmp_path, "local", ", options: {size: 1}", "Europe/Bern")
    assert (code, out) == (2, "")
    assert "tiers[0].options.size: unknown key" in err
    assert "windows[0].time_zone: " in err
    assert err.splitlines()[-1].startswith("hostler: 2 problems")


def test_a_provider_that_is_not_installed_here_is_only_told_of(cli: Cli, tmp_path: Path) -> None:
    code, _, err = checked(cli, tmp_path, "elsewhere", "", "UTC")
    assert code == 0
    assert "tiers[0].provider: not checked: there is no provider of that name" in err


@pytest.fixture
def own_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerProcess]:
    server = start_server(tmp_path, CONFIGURATION, "--ephemeral")
    monkeypatch.setenv("HOSTLER_SERVER", server.url)
    yield server
    assert server.end() == 0, server.log.read_text()


@pytest.mark.slow
def test_a_reload_shows_asks_and_applies(cli: Cli, own_server: ServerProcess) -> None:
    file = own_server.folder / "hostler.yaml"
    assert cli("config", "reload").out == "the file says what is in force already\n"
    file.write_text(CONFIGURATION.replace("port: 0", "port: 1").replace("lease: 2m", "lease: 3m"))
    told = (
        "~ pools.runners.lease: 2m -> 3m\n"
        "only after the server is started again:\n"
        "~ server.port: 0 -> 1\n"
    )
    assert cli("config", "reload", "--dry-run").out == told
    refused = cli("config", "reload")
    assert (refused.code, refused.out) == (2, told)
    assert "nobody is there to be asked" in refused.err
    assert cli("config", "reload", "--yes").out == f"{told}the configuration is in force\n"
    file.write_text(CONFIGURATION.replace("lease: 2m", "leash: 3m"))
    refused = cli("config", "reload", "--yes")
    assert refused.code == 2
    assert "line 8: pools.runners.leash: unknown key `leash`" in refused.err
    file.write_text(CONFIGURATION)
    own_server.process.send_signal(signal.SIGHUP)
    eventually(
        lambda: "configuration_reloaded" in own_server.log.read_text(), what="the reload is logged"
    )
