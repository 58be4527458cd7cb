"""What every provider must do, as tests. Ours pass them, and so must anybody's.

Subclass `ProviderConformance` in a test file and give it a `lab` fixture; pytest does the rest. A
provider that runs commands in its machines passes `CommandConformance` too:

    class TestMyProvider(ProviderConformance, CommandConformance):
        @pytest.fixture
        def lab(self, tmp_path):
            return MyLab(tmp_path)
"""

from hostler.testing.provider_conformance.commands import CommandConformance
from hostler.testing.provider_conformance.lab import ProviderLab, Provocation
from hostler.testing.provider_conformance.suite import ProviderConformance

__all__ = ["CommandConformance", "ProviderConformance", "ProviderLab", "Provocation"]
