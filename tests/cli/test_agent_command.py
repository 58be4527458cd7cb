"""`hostler agent`: what it offers, where it keeps its files, and how it is turned away."""

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from hostler.cli.commands.agent import _free_folders
from hostler.cli.declared_shape import declared_shape
from hostler.cli.errors import CommandError
from hostler.wire.work import Capability, Device
from tests.cli.conftest import ServerProcess, environment


def test_what_is_declared_is_offered() -> None:
    shape = declared_shape(10, 500, 2**30, ["gpu=2,model=a10", "sdi"], ["capture:0"])
    assert (shape.capacity, shape.cores_milli, shape.memory_bytes) == (10, 500, 2**30)
    assert shape.capabilities == [
        Capability(name="gpu", count=2, attributes={"model": "a10"}),
        Capability(name="sdi"),
    ]
    assert shape.devices == [Device(kind="capture", id="0")]


@pytest.mark.parametrize("text", ["=2", "gpu=two", "gpu=1,model"])
def test_a_capability_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is not"):
        declared_shape(None, None, None, [text], [])


@pytest.mark.parametrize("text", ["capture", ":0", "capture:"])
def test_a_device_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is not KIND:ID"):
        declared_shape(None, None, None, [], [text])


def test_each_agent_finds_a_folder_of_its_own_and_finds_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    place = ("http://127.0.0.1:7464", "studio", "own")
    first = next(_free_folders(*place))
    assert first == tmp_path / "hostler/agents/127.0.0.1-7464/studio-own-1"
    first.mkdir(parents=True)
    with (first / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert next(_free_folders(*place)).name == "studio-own-2"
    assert next(_free_folders(*place)) == first
    assert next(_free_folders("https://h.example", None, None)).parts[-2:] == (
        "h.example-https",
        "node-1",
    )


def run_agent(
    folder: Path, url: str, *options: str, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-P", "-m", "hostler", "agent", "--server", url),
            *("--data", str(folder), *options),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**environment(), **more},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "more", "code", "told"),
    [
        (("--pool", "studios", "--tier", "own"), {}, 3, "studios"),
        ((), {}, 2, "say what to join: --pool and --tier"),
        ((), {"HOSTLER_JOIN_TOKEN": "ht_wrong"}, 5, "this token is not known here"),
        (("--memory", "much"), {}, 2, "a size looks like"),
    ],
    ids=["unknown pool", "no pool", "wrong token", "bad size"],
)
def test_an_agent_that_cannot_join_says_why_and_ends(
    server: ServerProcess,
    tmp_path: Path,
    options: tuple[str, ...],
    more: dict[str, str],
    code: int,
    told: str,
) -> None:
    ended = run_agent(tmp_path / "a", server.url, *options, **more)
    last = ended.stderr.splitlines()[-1]
    assert ended.returncode == code, ended.stderr
    assert last.startswith(("hostler: ", "hint: "))
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_folder_is_for_one_agent(server: ServerProcess, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = run_agent(folder, server.url, "--pool", "studio", "--tier", "own")
    assert ended.returncode == 2
    assert "hostler: another agent uses this data folder" in ended.stderr
