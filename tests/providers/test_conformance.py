"""Our providers pass the suite that everybody's must."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.testing.provider_conformance import CommandConformance, ProviderConformance
from tests.providers.docker_lab import DockerLab
from tests.providers.labs import FakeFilesLab, FakeLab, LocalLab
from tests.providers.ssh_lab import SshLab


class TestFakeProvider(ProviderConformance):
    @pytest.fixture
    def lab(self) -> FakeLab:
        return FakeLab()


class TestFakeProviderThatTakesItsTimeToStop(ProviderConformance):
    @pytest.fixture
    def lab(self) -> FakeLab:
        return FakeLab(stop_ms=20)


class TestInstalledFakeProvider(ProviderConformance, CommandConformance):
    @pytest.fixture
    def lab(self, tmp_path: Path) -> FakeFilesLab:
        return FakeFilesLab(tmp_path / "fake")


class TestLocalProvider(ProviderConformance):
    @pytest.fixture
    def lab(self, tmp_path: Path) -> Iterator[LocalLab]:
        lab = LocalLab(tmp_path / "local")
        yield lab
        lab.clean_up()


@pytest.mark.slow
class TestDockerProvider(ProviderConformance, CommandConformance):
    @pytest.fixture
    def lab(self, docker_lab: DockerLab) -> DockerLab:
        return docker_lab


@pytest.mark.slow
class TestSshProvider(ProviderConformance, CommandConformance):
    @pytest.fixture
    def lab(self, ssh_lab: SshLab) -> SshLab:
        return ssh_lab
