"""Worlds for tests of leasing, each looked over again at the end of its test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hostler.core.inputs import FullScan
from hostler.model.record import Record
from tests.core.leasing.rental import Rental

NewRental = Callable[..., Rental]


@pytest.fixture
def rental() -> Iterator[NewRental]:
    """Give worlds of these records; at the end a full scan of each must find nothing to do."""
    worlds: list[Rental] = []

    def new(*records: Record, **settings: Any) -> Rental:
        world = Rental(*records, **settings)
        world.run(FullScan())
        worlds.append(world)
        return world

    yield new
    for world in worlds:
        world.check_calm()
