"""What all tests share: asyncio for coroutines, and a Hypothesis that no clock hurries."""

import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

# A busy machine must not fail a property (deadline, too_slow); CI draws the same examples each
# time, so that a change is judged and not a draw. By hand each run draws new ones.
settings.register_profile(
    "hostler",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
)
settings.load_profile("hostler")


@pytest.fixture
def anyio_backend() -> str:
    """Run `async def` tests on asyncio, as the server and the agents are."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _logs_of_its_own() -> Iterator[None]:
    """Take back how a test has set up logs: what it wrote to is closed when the next one runs."""
    yield
    structlog.reset_defaults()
