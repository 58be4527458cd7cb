"""What people write: read well, or refused with every error at once, each with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hostler.model import Pool, Settings
from hostler.model.launch import Launch
from hostler.wire.documents import (
    BundleDocument,
    ConfigDocument,
    DocumentProblem,
    DocumentRejected,
    bundle_schema,
    check_value,
    config_schema,
    read_bundles,
    read_config,
    require_all,
)

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
LAUGHS = "x0: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
"""A few lines of nested aliases that stand for a billion values."""

BAD = sorted((HERE / "documents").glob("*.yaml"))


def told(path: Path) -> str:
    """All problems of a file, as the command line shows them."""
    text = path.read_text(encoding="utf-8")
    if path.name.startswith("config"):
        problems = read_config(text).problems
    else:
        problems = tuple(p for reading in read_bundles(text) for p in reading.problems)
    return "".join(f"{problem.told(path.name)}\n" for problem in problems)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_every_error_is_told_at_once_with_its_place(path: Path) -> None:
    """The `.txt` beside each is what a person reads; `python -m tests.wire` writes it anew."""
    assert told(path) == path.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_sound(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if "\npools:\n" in text:
        read_config(text).require()
    else:
        assert require_all(read_bundles(text))


def test_an_empty_configuration_is_a_fleet_without_pools() -> None:
    assert read_config("").require() == ConfigDocument()
    assert read_config("# nothing yet\n").require() == ConfigDocument()


def test_defaults_of_documents_are_those_of_records() -> None:
    """A document says every default, so that its schema can; the model has them for tests."""
    from hostler.engine.translate import apply_configuration, submit_bundle

    document = read_config("pools: {p: {tiers: [{name: t, kind: fixed}]}}").require()
    applied = apply_configuration(document, now_ms=0, request_id="r", principal="p")
    assert applied.pools == (Pool(name="p", tiers=applied.pools[0].tiers),)
    defaults = msgspec.structs.asdict(Settings(fleet_id="f"))
    assert msgspec.structs.asdict(applied.settings) == {
        name: defaults[name] for name in applied.settings.__struct_fields__
    }
    (reading,) = read_bundles("{bundle: b, pool: p, jobs: [{name: j, run: {argv: [x]}}]}")
    (job,) = submit_bundle(reading.require(), request_id="r", principal="p").jobs
    assert job.launch == Launch(argv=("x",))


def test_numbers_keep_how_they_were_written_where_text_is_wanted() -> None:
    (reading,) = read_bundles(
        "{bundle: b, pool: p, jobs: [{name: j, run: {argv: [sleep, 1.10],"
        " env: {VERSION: 1.10, PORT: 0o17, COUNTRY: no, AT: 12:30, N: 010}}}]}"
    )
    run = reading.require().jobs[0].run
    assert run.argv == ["sleep", "1.10"]
    assert run.env == {
        "VERSION": "1.10",
        "PORT": "0o17",
        "COUNTRY": "no",
        "AT": "12:30",
        "N": "010",
    }


def test_what_a_job_works_by_is_whatever_it_likes_within_a_bound() -> None:
    from hostler.engine.translate import submit_bundle

    text = "{bundle: b, pool: p, jobs: [{name: j, run: {argv: [x]}, config: CONFIG}]}"
    values = "{b: [1, 1.10, no, 2026-01-01], a: {c: true, d: null}, g: 'x'}"
    (reading,) = read_bundles(text.replace("CONFIG", f"{{values: {values}, files: {{z: '1'}}}}"))
    (job,) = submit_bundle(reading.require(), request_id="r", principal="p").jobs
    assert job.config is not None
    assert job.config.values_json == (
        '{"a":{"c":true,"d":null},"b":[1,1.1,"no","2026-01-01"],"g":"x"}'
    )
    large = f"{{files: {{z: {'x' * 65_536}}}}}"
    (reading,) = read_bundles(text.replace("CONFIG", large))
    (problem,) = reading.problems
    assert (problem.path, problem.code) == ("jobs[0].config", "too_large")


def test_a_file_may_hold_several_bundles() -> None:
    one = "bundle: {name}\npool: p\njobs: [{{name: j, run: {{argv: [x]}}}}]\n"
    readings = read_bundles("---\n" + one.format(name="a") + "---\n" + one.format(name="b"))
    assert [document.bundle for document in require_all(readings)] == ["a", "b"]
    twice = read_bundles(one.format(name="a") + "---\n" + one.format(name="a"))
    with pytest.raises(DocumentRejected, match="1 problem") as rejected:
        require_all(twice)
    assert rejected.value.problems[0].line == 5


def test_problems_that_the_server_found_get_their_lines() -> None:
    (reading,) = read_bundles(
        "bundle: b\npool: p\njobs:\n  - name: j\n    requires:\n      capacity: 9\n"
        "    run: {argv: [x]}\n",
        "b.yaml",
    )
    assert reading.line_of("jobs[0].requires.capacity") == (6, 7)
    assert reading.line_of("jobs[0].run.logs.files") == (7, 5)
    problem = DocumentProblem(path="jobs[0].requires", code="x", message="too much")
    assert reading.placed([problem]).lines() == ["b.yaml:5:5: jobs[0].requires: too much"]


def test_json_is_checked_like_yaml() -> None:
    value: dict[str, Any] = {"bundle": "b", "pool": "p", "replicas": 0, "jobs": [], "x": None}
    assert {one.path for one in check_value(value, BundleDocument).problems} == {
        "replicas",
        "jobs",
        "x",
    }
    sound: dict[str, Any] = {
        "bundle": "b",
        "pool": "p",
        "jobs": [{"name": "j", "run": {"argv": ["x"]}}],
    }
    assert check_value(sound, BundleDocument).require().jobs[0].name == "j"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: &a [*a]", "yaml_cycle"),
        ("[" * 200 + "]" * 200, "yaml_too_deep"),
        (LAUGHS, "yaml_too_large"),
        ("a: 'b", "yaml_syntax"),
        ("a:\n\t- b", "yaml_syntax"),
        ("!!python/object:os.system {}", "yaml_tag"),
        ("fleet: !!int text", "yaml_tag"),
        ("- a", "wrong_type"),
        ("a: 1\n---\nb: 2", "too_many_documents"),
    ],
)
def test_hostile_and_broken_text_is_a_problem(text: str, code: str) -> None:
    assert code in {problem.code for problem in read_config(text).problems}


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    config = read_config(text)
    assert (config.document is None) == bool(config.problems)
    for reading in read_bundles(text):
        assert (reading.document is None) == bool(reading.problems)


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["pools", "tiers", "name", "a", "jobs", "run"]), inner),
    max_leaves=12,
))  # fmt: skip
def test_any_value_is_read_or_refused(value: object) -> None:
    for kind in (ConfigDocument, BundleDocument):
        reading = check_value(value, kind)  # type: ignore[arg-type]  # any plain value
        assert (reading.document is None) == bool(reading.problems)


@pytest.mark.parametrize(
    ("schema", "path"),
    [(config_schema, "hostler.yaml"), (bundle_schema, "live-channel.yaml")],
    ids=["config", "bundle"],
)
def test_the_schema_takes_what_the_reader_takes(schema: object, path: str) -> None:
    assert callable(schema)
    validator = jsonschema_rs.validator_for(schema())
    document = yaml.safe_load((EXAMPLES / path).read_text(encoding="utf-8"))
    assert [str(error) for error in validator.iter_errors(document)] == []
    assert not validator.is_valid({**document, "unknown": 1})
