"""The demo's own world, whatever name its folder is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.cli.demo.world import CONFIGURATION, DemoWorld
from hostler.wire.documents import read_config


@pytest.mark.parametrize("name", ["hostler-demo-ab0cd_1x", "hostler-demo-_b0cd11_"])
def test_the_fleet_has_an_id_that_is_allowed(name: str) -> None:
    world = DemoWorld(root=Path("/tmp") / name, port=7_000)
    text = CONFIGURATION.format(fleet_id=world.fleet_id, port=world.port)
    assert read_config(text, "hostler.yaml").require().fleet.id == world.fleet_id
