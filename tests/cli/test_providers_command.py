"""`hostler providers`: what is installed, and whether what tiers need is there."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Cli

CONFIGURATION = """\
pools:
  runners:
    tiers:
      - name: fakes
        kind: elastic
        provider: fake
        node_count_max: 3
        offers: [{name: small, shape: {capacity: 1}}]
        options: {boot: 1s}
      - name: containers
        kind: elastic
        provider: docker
        node_count_max: 3
        offers: [{name: small, shape: {capacity: 1}}]
        options: {image: none, socket: /no/such/socket}
"""


def test_providers_are_listed_with_what_they_come_from(cli: Cli) -> None:
    ended = cli("providers", "list")
    assert ended.code == 0
    assert ended.out.splitlines()[0].split() == ["NAME", "USABLE", "PACKAGE", "PROBLEM"]
    told = json.loads(cli("providers", "list", "-o", "json").out)
    assert {"docker", "fake", "local", "ssh"} <= {one["name"] for one in told}
    assert all(one["problem"] == "" for one in told)
    assert "local" in cli("providers", "list", "-o", "name").out.split()


def test_tiers_are_checked_and_what_is_not_good_exits_with_1(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "hostler.yaml"
    file.write_text(CONFIGURATION)
    ended = cli("providers", "check", "-f", str(file), "-o", "json")
    assert ended.code == 1
    rows = {row["tier"]: row for row in json.loads(ended.out)}
    assert rows["runners/fakes"]["is_good"] is True
    assert rows["runners/containers"]["is_good"] is False
    assert "does not listen" in rows["runners/containers"]["detail"]
    assert cli("providers", "check", "fake", "-f", str(file)).code == 0


def test_a_provider_that_no_tier_names_is_not_found(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "hostler.yaml"
    file.write_text(CONFIGURATION)
    ended = cli("providers", "check", "ssh", "-f", str(file))
    assert ended.code == 3
    assert "docker, fake" in ended.err


def test_options_that_do_not_fit_are_a_row(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "hostler.yaml"
    file.write_text(CONFIGURATION.replace("boot: 1s", "boot: soon"))
    ended = cli("providers", "check", "fake", "-f", str(file))
    assert ended.code == 1
    assert "soon" in ended.out
