"""Our providers pass the suite that everybody's must."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.testing.provider_conformance import ProviderConformance
from tests.providers.labs import FakeLab, LocalLab


class TestFakeProvider(ProviderConformance):
    @pytest.fixture
    def lab(self) -> FakeLab:
        return FakeLab()


class TestFakeProviderThatTakesItsTimeToStop(ProviderConformance):
    @pytest.fixture
    def lab(self) -> FakeLab:
        return FakeLab(stop_ms=20)


class TestLocalProvider(ProviderConformance):
    @pytest.fixture
    def lab(self, tmp_path: Path) -> Iterator[LocalLab]:
        lab = LocalLab(tmp_path / "local")
        yield lab
        lab.clean_up()
