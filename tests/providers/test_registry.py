"""Providers are found by name, loaded when used, and their options are checked whole."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import msgspec
import pytest

from hostler.engine.clock import SystemClock
from hostler.ports.provider import RequestInvalid
from hostler.providers.local.provider import LocalOptions, LocalProvider
from hostler.providers.registry import Registry, read_options
from hostler.testing.fake_provider import FakeCloud, fake_provider_kind


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path, SystemClock(), {"fake": fake_provider_kind(FakeCloud())})


def test_installed_and_given_providers_are_found_by_name(registry: Registry) -> None:
    assert registry.names() == ["docker", "fake", "local", "ssh"]
    assert registry.kind("local").options_type is LocalOptions


async def test_a_provider_is_opened_once_in_a_folder_of_its_own(
    registry: Registry, tmp_path: Path
) -> None:
    local = registry.opened("local", "f-ours")
    assert isinstance(local, LocalProvider)
    assert registry.opened("local", "f-ours") is local
    assert not (tmp_path / "local").exists()
    await registry.close()
    assert registry.opened("local", "f-ours") is not local


def test_sc_200_sc_201_an_unknown_name_is_answered_with_the_nearest(registry: Registry) -> None:
    with pytest.raises(RequestInvalid, match="did you mean local") as refused:
        registry.kind("locl")
    assert refused.value.fields["known"] == "docker, fake, local, ssh"


@pytest.mark.parametrize(
    ("value", "match"),
    [("hostler.no_such_module:X", "install what it needs"), ("os:sep", "ProviderKind")],
)
def test_a_provider_that_cannot_be_loaded_says_why(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, value: str, match: str
) -> None:
    found = EntryPoint(name="broken", value=value, group="hostler.providers")
    monkeypatch.setattr(registry, "_entry_points", {"broken": found})
    with pytest.raises(RequestInvalid, match=match):
        registry.kind("broken")


def test_all_problems_with_options_are_told_at_once(registry: Registry) -> None:
    problems = registry.problems_of("local", {"machines_max": "many", "colour": "red"})
    assert [problem.path for problem in problems] == ["options.machines_max", "options.colour"]
    assert registry.problems_of("local", {"machines_max": 3}) == []
    assert [problem.path for problem in registry.problems_of("none", {})] == ["provider"]


def test_options_that_no_longer_fit_make_a_launch_invalid(registry: Registry) -> None:
    kind = registry.kind("local")
    assert read_options(kind, '{"machines_max": 3}') == LocalOptions(machines_max=3)
    with pytest.raises(RequestInvalid, match="options"):
        read_options(kind, '{"removed": 1}')


def test_no_provider_is_loaded_before_its_name_is_used() -> None:
    script = (
        "import sys, hostler.engine.assemble; "
        "print([m for m in sys.modules if m.startswith('hostler.providers.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['hostler.providers.registry']"


def a_broken_import() -> None:
    raise ZeroDivisionError("as somebody else's package may")


@pytest.mark.parametrize(
    ("version", "match"), [(0, "upgrade its package"), (99, "upgrade Hostler")]
)
def test_sc_201_a_provider_of_another_version_is_refused_and_breaks_no_other(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, version: int, match: str
) -> None:
    kind = msgspec.structs.replace(fake_provider_kind(FakeCloud()), api_version=version)
    monkeypatch.setattr("os.hostler_kind", kind, raising=False)
    found = EntryPoint(name="other", value="os:hostler_kind", group="hostler.providers")
    monkeypatch.setattr(registry, "_entry_points", {"other": found, **registry._installed()})
    with pytest.raises(RequestInvalid, match=match):
        registry.kind("other")
    problems = {one.name: one.problem for one in registry.installed()}
    assert match in problems["other"]
    assert problems["local"] == problems["fake"] == ""


def test_a_package_that_fails_on_import_breaks_no_other(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(EntryPoint):
        def load(self) -> None:
            a_broken_import()

    found = Broken(name="broken", value="x:y", group="hostler.providers")
    monkeypatch.setattr(registry, "_entry_points", {"broken": found})
    with pytest.raises(RequestInvalid, match="written for another Hostler") as refused:
        registry.kind("broken")
    assert "ZeroDivisionError" in str(refused.value)
    assert registry.kind("fake").name == "fake"


def test_what_is_wrong_between_options_is_a_problem_of_the_document(registry: Registry) -> None:
    (problem,) = registry.problems_of("docker", {"image": "i", "mounts": ["here"]})
    assert (problem.path, problem.code) == ("options", "options_invalid")
    assert "mounts[0]" in problem.message
