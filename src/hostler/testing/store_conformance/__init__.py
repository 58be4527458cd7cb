"""What every store must do, as tests. Ours pass them without a skip, and so must anybody's.

Subclass `StoreConformance` in a test file and give it a `new_lab` fixture; pytest does the rest:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def new_lab(self, tmp_path):
            return lambda: MyLab(tmp_path / uuid4().hex)
"""

from hostler.testing.store_conformance.history import HistoryConformance
from hostler.testing.store_conformance.lab import NewLab, StoreLab
from hostler.testing.store_conformance.processes import ProcessConformance
from hostler.testing.store_conformance.records import PropertyConformance, RecordConformance
from hostler.testing.store_conformance.refusals import RefusalConformance


class StoreConformance(
    RecordConformance,
    RefusalConformance,
    HistoryConformance,
    ProcessConformance,
    PropertyConformance,
):
    """The whole suite."""


__all__ = ["NewLab", "StoreConformance", "StoreLab"]
