"""Worlds for tests of spend, each looked over again at the end of its test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hostler.core.inputs import FullScan
from hostler.model.record import Record
from tests.core.spend.accounts import Accounts

NewAccounts = Callable[..., Accounts]


@pytest.fixture
def accounts() -> Iterator[NewAccounts]:
    """Give worlds of these records; at the end a full scan of each must find nothing to do."""
    worlds: list[Accounts] = []

    def new(*records: Record, **settings: Any) -> Accounts:
        world = Accounts(*records, **settings)
        world.run(FullScan())
        worlds.append(world)
        return world

    yield new
    for world in worlds:
        world.check_calm()
