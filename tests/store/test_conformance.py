"""Our stores pass the suite that everybody's must."""

from itertools import count
from pathlib import Path

import pytest

from hostler.testing.store_conformance import NewLab, StoreConformance
from tests.store.labs import MemoryLab, SqliteLab


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def new_lab(self) -> NewLab:
        return MemoryLab


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    def new_lab(self, tmp_path: Path) -> NewLab:
        numbers = count()
        return lambda: SqliteLab(tmp_path / f"lab-{next(numbers)}")
