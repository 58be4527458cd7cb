"""An engine is put together from an address and a folder, and starts with whatever is there."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from hostler.base.errors import Rejected
from hostler.core.replies import Accepted
from hostler.engine import limits
from hostler.engine.assemble import EngineOptions, assemble
from hostler.engine.recover import fleet_of
from hostler.ports.store import StoreBusy
from hostler.store.memory import MemoryDisk, MemoryStore
from hostler.testing.builders import a_fixed_tier, a_pool
from hostler.testing.virtual_time import VirtualClock, run_virtually
from tests.engine.lab import World, configuration

CONFIGURATION = configuration(a_pool("p", tiers=(a_fixed_tier("own"),)))


def options(folder: Path, url: str | None = None) -> EngineOptions:
    return EngineOptions(
        store_url=url or f"sqlite:///{folder / 'hostler.db'}",
        folder=folder,
        server_url="http://127.0.0.1:1",
    )


async def test_what_was_accepted_is_there_after_a_restart(tmp_path: Path) -> None:
    first = await assemble(options(tmp_path))
    await first.start()
    assert isinstance(await first.submit(CONFIGURATION), Accepted)
    token = first.keys.join_token("n-1", 1)
    await first.stop()
    again = await assemble(options(tmp_path))
    await again.start()
    assert await again.read(lambda fleet: list(fleet.pools.rows)) == ["p"]
    assert again.keys.verify_join_token(token) == ("n-1", 1)
    await again.check()
    await again.stop()


async def test_a_fleet_in_memory_leaves_nothing(tmp_path: Path) -> None:
    engine = await assemble(options(tmp_path, "memory:"))
    await engine.start()
    await engine.stop()
    assert list(tmp_path.iterdir()) == []


async def test_a_second_server_on_a_file_is_refused(tmp_path: Path) -> None:
    engine = await assemble(options(tmp_path))
    with pytest.raises(StoreBusy):
        await assemble(options(tmp_path))
    await engine.stop()


async def test_a_bad_key_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    (tmp_path / "server.key").write_bytes(b"short")
    (tmp_path / "server.key").chmod(0o600)
    with pytest.raises(Rejected, match="not a server key"):
        await assemble(options(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["server.key"]


async def test_nothing_can_be_asked_before_the_start(tmp_path: Path) -> None:
    engine = await assemble(options(tmp_path, "memory:"))
    with pytest.raises(Exception, match="not started yet"):
        await engine.read(lambda fleet: fleet.revision)
    await engine.stop()


def test_a_large_fleet_is_loaded_with_the_collector_out_of_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = MemoryDisk()

    async def main() -> None:
        engine = World(VirtualClock()).engine(MemoryStore(disk))
        await engine.start()
        await engine.submit(CONFIGURATION)
        await engine.stop()

    run_virtually(main())
    monkeypatch.setattr(limits, "RECORD_COUNT_LARGE", 1)
    fleet = fleet_of(disk.load())
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
    assert list(fleet.pools.rows) == ["p"]
