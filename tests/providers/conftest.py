"""Real machines, started once for each process that runs tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.machines import ContainerEngine, container_engine
from tests.providers.docker_lab import DockerLab


@pytest.fixture(scope="session")
def engine() -> Iterator[ContainerEngine]:
    with container_engine() as engine:
        yield engine


@pytest.fixture
async def docker_lab(engine: ContainerEngine, tmp_path: Path) -> AsyncIterator[DockerLab]:
    lab = DockerLab(engine, tmp_path / "docker")
    yield lab
    await lab.clean_up()
