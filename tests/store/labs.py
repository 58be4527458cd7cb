"""The places where our stores are tried."""

from pathlib import Path

from hostler.ports.store import Store
from hostler.store.memory import MemoryDisk, MemoryStore
from hostler.store.open import open_store
from hostler.testing.doomed_writer import doomed_commits, kill_while_committing


class MemoryLab:
    """A disk in memory; a writer dies by being forgotten, since its commits cannot be cut short."""

    def __init__(self) -> None:
        self._disk = MemoryDisk()

    async def open(self) -> Store:
        return MemoryStore(self._disk)

    async def kill_while_committing(self, *, acknowledged_count: int) -> int:
        store = await self.open()
        commits = doomed_commits(await store.load(), await store.claim())
        acknowledged = 0
        for _ in range(acknowledged_count):
            commit = next(commits)
            await store.commit(commit)
            acknowledged = commit.revision
        return acknowledged


class SqliteLab:
    """A file of its own, and real processes that die."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "hostler.db"
        self.url = f"sqlite:///{self.path}"

    async def open(self) -> Store:
        return await open_store(self.url)

    async def kill_while_committing(self, *, acknowledged_count: int) -> int:
        return await kill_while_committing(
            "hostler.store.open:open_store", self.url, acknowledged_count=acknowledged_count
        )
