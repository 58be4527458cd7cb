"""Worlds for tests of placing, each looked over again at the end of its test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hostler.model.record import Record
from tests.core.placing.theatre import Theatre

NewTheatre = Callable[..., Theatre]


@pytest.fixture
def theatre() -> Iterator[NewTheatre]:
    """Give worlds of these records; at the end a full scan of each must find nothing to do."""
    worlds: list[Theatre] = []

    def new(*records: Record, **settings: Any) -> Theatre:
        worlds.append(Theatre(*records, **settings))
        return worlds[-1]

    yield new
    for world in worlds:
        world.check_calm()
