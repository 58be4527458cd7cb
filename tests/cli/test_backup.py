"""`hostler backup`: a copy of a running server is a data folder, with all that was said."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CONFIGURATION, Cli, start_server


def test_a_copy_of_a_running_server_starts_as_it_was(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    server = start_server(tmp_path / "first", CONFIGURATION)
    monkeypatch.setenv("HOSTLER_SERVER", server.url)
    assert cli("token", "create", "watcher", "--role", "viewer").code == 0
    ended = cli("backup", str(tmp_path / "backups"), "--data", str(tmp_path / "first" / "data"))
    assert ended.code == 0, ended.err
    copy = Path(ended.out.strip())
    assert {file.name for file in copy.iterdir()} >= {"hostler.db", "server.key"}
    assert all(file.stat().st_mode & 0o077 == 0 for file in (copy, *copy.iterdir()))
    assert server.end() == 0

    restored = start_server(tmp_path / "second", CONFIGURATION, "--data", str(copy))
    monkeypatch.setenv("HOSTLER_SERVER", restored.url)
    assert "watcher" in cli("get", "tokens").out
    assert "create_token" in cli("get", "audit").out
    assert "is_restored=true" in cli("events", "--tail", "20").out
    assert cli("token", "create", "second", "--role", "viewer").code == 0
    tokens = json.loads(cli("get", "tokens", "-o", "json").out)["items"]
    id_by_name = {each["name"]: each["token_id"] for each in tokens}
    # The original may have given out the next ones since; none of those is given out here.
    assert len(id_by_name["second"]) > len(id_by_name["watcher"])
    assert restored.end() == 0


def test_what_is_no_data_folder_is_said(tmp_path: Path, cli: Cli) -> None:
    ended = cli("backup", str(tmp_path / "backups"), "--data", str(tmp_path))
    assert ended.code == 3
    assert "is the data folder of a server?" in ended.err.replace(f"{tmp_path} ", "")
