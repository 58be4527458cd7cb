"""The server's disk: what was acknowledged is there, and everything else may or may not be.

Around the real memory store: every record, event and journal row is bytes, made and read by the
real codec. A commit takes its time; it may surely fail, or end in doubt, done or not.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

import msgspec

from hostler.ports.store import Commit, Loaded
from hostler.sim.replay import Life
from hostler.sim.world import World
from hostler.store.memory import MemoryDisk


class DiskPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the disk behaves while faults are on. Chances are in a million."""

    commit_ms: tuple[int, int] = (0, 3)
    is_slow_ppm: int = 0
    slow_ms: tuple[int, int] = (200, 5_000)
    is_failing_ppm: int = 0
    is_doubtful_ppm: int = 0


CALM: Final = DiskPlan()


class CommitResult(Enum):
    """How a commit ended, as the server gets to know it."""

    DONE = auto()
    FAILED = auto()
    """It surely did not happen."""
    DOUBTFUL = auto()
    """Nobody knows: the server must begin again from what is on the disk."""


class Disk:
    """One disk.

    Attributes:
        plan: How it behaves at present.
        rows: The real memory store's disk; the truth about what is durable.
    """

    def __init__(self, world: World, plan: DiskPlan) -> None:
        self.world = world
        self.plan = plan
        self.rows = MemoryDisk()
        self.revision = 0
        """Of the last commit that is truly there; only checkers may look."""
        self._rng = world.stream("disk")
        self._under_way: Commit | None = None
        self.lives: list[Life] = []
        """Every life of the server with its journal, for replay."""

    def load(self) -> Loaded:
        """Return what is there: a new life of the server begins."""
        loaded = self.rows.load()
        self.lives.append(Life(loaded))
        return loaded

    def commit(self, commit: Commit, answer: Callable[[CommitResult], None]) -> None:
        """Make a commit durable after a while, or not."""
        plan, rng = self.plan, self._rng
        delay_ms = rng.between(*plan.commit_ms)
        if rng.chance(plan.is_slow_ppm):
            delay_ms += rng.between(*plan.slow_ms)
        if rng.chance(plan.is_failing_ppm):
            self.world.probe("disk.commit_failed")
            self.world.after(delay_ms, answer, CommitResult.FAILED)
            return
        is_doubtful = rng.chance(plan.is_doubtful_ppm)
        is_done = not is_doubtful or rng.chance(500_000)
        if is_doubtful:
            self.world.probe("disk.doubtful_done" if is_done else "disk.doubtful_lost")
        result = CommitResult.DOUBTFUL if is_doubtful else CommitResult.DONE
        self._under_way = commit
        self.world.after(delay_ms, self._land, commit, is_done, result, answer)

    def _land(
        self,
        commit: Commit,
        is_done: bool,  # noqa: FBT001 - the queue passes by position
        result: CommitResult,
        answer: Callable[[CommitResult], None],
    ) -> None:
        if self._under_way is not commit:
            return
        self._under_way = None
        if is_done:
            self._take(commit)
        answer(result)

    def _take(self, commit: Commit) -> None:
        self.rows.commit(commit)
        self.revision = commit.revision
        if commit.journal is not None:
            self.lives[-1].rows.append(commit.journal)

    def power_lost(self) -> None:
        """Decide about a commit under way when the server's process ends: it lands now or never."""
        commit, self._under_way = self._under_way, None
        if commit is not None:
            is_done = self._rng.chance(500_000)
            self.world.probe("disk.cut_off_done" if is_done else "disk.cut_off_lost")
            if is_done:
                self._take(commit)
