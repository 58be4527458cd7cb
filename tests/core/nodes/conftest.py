"""Worlds for tests of nodes, each looked over again at the end of its test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hostler.model.record import Record
from tests.core.nodes.stable import Stable

NewStable = Callable[..., Stable]


@pytest.fixture
def stable() -> Iterator[NewStable]:
    """Give worlds of these records; at the end a full scan of each must find nothing to do."""
    worlds: list[Stable] = []

    def new(*records: Record, **settings: Any) -> Stable:
        worlds.append(Stable(*records, **settings))
        return worlds[-1]

    yield new
    for world in worlds:
        world.check_calm()
