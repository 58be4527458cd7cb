"""A server process that tells the story on a file, and kills itself with -9 where it is told to.

    python -m tests.engine.doomed_server FOLDER [BOUNDARY PASSAGE]

The world outside goes on when a server dies; here it is written down at the instant of the kill,
and the next process begins with it. At the end the process prints how everything ended.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from pathlib import Path

from hostler.base.encoding import encode
from hostler.engine.boundaries import Boundary
from hostler.engine.clock import SystemClock
from hostler.store.open import open_store
from tests.engine.lab import PowerSwitch, Story, World, ending_of


class KillSwitch(PowerSwitch):
    """Kills the process instead of raising."""

    def __init__(self, folder: Path, world: World, at: Boundary | None, passage: int) -> None:
        super().__init__()
        self._folder = folder
        self._world = world
        self._fatal = (at, passage)

    def __call__(self, boundary: Boundary) -> None:
        super().__call__(boundary)
        if (boundary, self.counts[boundary]) == self._fatal:
            (self._folder / "world").write_bytes(pickle.dumps(self._world.memory()))
            os.kill(os.getpid(), signal.SIGKILL)


async def main(folder: Path, at: Boundary | None, passage: int) -> None:
    world = World(SystemClock())
    if (folder / "world").exists():
        world.remember(pickle.loads((folder / "world").read_bytes()))
    store = await open_store(f"sqlite:///{folder / 'hostler.db'}")
    engine = world.engine(store, KillSwitch(folder, world, at, passage))
    await engine.start()
    world.agents.attach(engine)
    await Story(lambda: engine, idle_ms=0).tell()
    ending = await engine.read(lambda fleet: ending_of(fleet, world))
    await engine.stop()
    sys.stdout.write(encode(ending).decode())


if __name__ == "__main__":
    asyncio.run(
        main(
            Path(sys.argv[1]),
            Boundary(sys.argv[2]) if len(sys.argv) > 2 else None,
            int(sys.argv[3]) if len(sys.argv) > 3 else 0,
        )
    )
