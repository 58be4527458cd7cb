"""Files, folders and standard input: read whole, every error of all of them told at once."""

import io
import json
from pathlib import Path

import pytest

from hostler.cli.documents import read_bundle_files
from hostler.cli.errors import CommandError, told
from tests.cli.conftest import Cli, Ended

GOOD = "bundle: {name}\npool: p\njobs: [{{name: j, run: {{argv: [a]}}}}]\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_a_folder_is_read_by_name_and_nothing_else_in_it(tmp_path: Path) -> None:
    write(tmp_path, b=GOOD.format(name="two"), a=GOOD.format(name="one"))
    (tmp_path / "README.md").write_text("not a bundle")
    found = [reading.require().bundle for reading in read_bundle_files([tmp_path])]
    assert found == ["one", "two"]


def test_all_errors_of_all_files_are_told_with_their_lines(tmp_path: Path) -> None:
    write(tmp_path, a="bundle: A\npool: p\njobs: []\n", b="bundle: b\n---\npool: p\n")
    with pytest.raises(CommandError) as refused:
        read_bundle_files([tmp_path])
    code, lines = told(refused.value)
    assert code == 2
    places = [line.split(": ")[0].removeprefix(str(tmp_path)) for line in lines]
    assert places[:3] == ["/a.yaml:1:1", "/a.yaml:3:1", "/b.yaml:1:1"]
    assert lines[-1] == f"hostler: {len(lines) - 1} problems in several files"


def test_one_bundle_in_two_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path, a=GOOD.format(name="same"), b=GOOD.format(name="same"))
    with pytest.raises(CommandError) as refused:
        read_bundle_files([tmp_path])
    assert "the bundle same stands in" in refused.value.details[0]


def test_a_folder_without_bundles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"has no \.yaml"):
        read_bundle_files([tmp_path])


def test_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(GOOD.format(name="piped")))
    assert read_bundle_files([Path("-")])[0].require().bundle == "piped"


def test_a_good_configuration_is_said_to_be_good(cli: Cli) -> None:
    ended = cli("config", "check", "examples/hostler.yaml")
    assert ended == Ended(0, "examples/hostler.yaml is good: 2 pools, 3 tiers\n", "")


@pytest.mark.parametrize("name", ["docker", "ssh"])
def test_the_examples_of_providers_are_good(cli: Cli, name: str) -> None:
    ended = cli("config", "check", f"examples/{name}.yaml")
    assert ended == Ended(0, f"examples/{name}.yaml is good: 1 pool, 1 tier\n", "")


def test_a_bad_configuration_is_told_whole(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "hostler.yaml"
    file.write_text("fleet:\n  timing: {heartbeat: 5x}\npools:\n  p: {}\n")
    ended = cli("config", "check", str(file))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"{file}:2:12: fleet.timing.heartbeat: a duration looks like 250ms, 30s, 5m, 1h30m or 2d,"
        ' found "5x"\n'
        f"{file}:4:3: pools.p.tiers: `tiers` is missing; add it\n"
        f"hostler: 2 problems in {file}\n"
    )


@pytest.mark.parametrize(
    ("content", "told_"), [(None, "there is no file"), (b"\xff\xfe\x00", "is not text in UTF-8")]
)
def test_a_file_that_cannot_be_read_is_told(
    cli: Cli, tmp_path: Path, content: bytes | None, told_: str
) -> None:
    file = tmp_path / "hostler.yaml"
    if content is not None:
        file.write_bytes(content)
    ended = cli("config", "check", str(file))
    assert ended.code == 2
    assert told_ in ended.err


@pytest.mark.parametrize("more", [[], ["--bundle"]])
def test_schemas_are_json(cli: Cli, more: list[str]) -> None:
    assert json.loads(cli("config", "schema", *more).out)["$schema"]
