"""Real machines, started once for each process that runs tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.machines import ContainerEngine, container_engine
from tests.providers.docker_lab import DockerLab
from tests.providers.ssh_lab import Hosts, SshLab, ssh_hosts


@pytest.fixture(scope="session")
def engine() -> Iterator[ContainerEngine]:
    with container_engine() as engine:
        yield engine


@pytest.fixture
async def docker_lab(engine: ContainerEngine, tmp_path: Path) -> AsyncIterator[DockerLab]:
    lab = DockerLab(engine, tmp_path / "docker")
    yield lab
    await lab.clean_up()


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with ssh_hosts(tmp_path_factory.mktemp("hosts"), 3) as hosts:
        yield hosts


@pytest.fixture
async def ssh_lab(hosts: Hosts, tmp_path: Path) -> AsyncIterator[SshLab]:
    lab = SshLab(hosts, tmp_path / "ssh")
    yield lab
    await lab.clean_up()
