"""The crew: workers under two hash seeds that run a range of histories between them."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import IO, Final, Self, cast

import msgspec

from hostler.sim.history import Outcome
from hostler.sim.worker import Task

HASH_SEEDS: Final = (1, 2)
"""Every history runs under each of them."""


class _Worker:
    """One worker process."""

    def __init__(self, hash_seed: int) -> None:
        self.hash_seed = hash_seed
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hostler.sim.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        )
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)

    def run(self, task: Task) -> Outcome:
        """Run one history there."""
        self._stdin.write(msgspec.json.encode(task) + b"\n")
        self._stdin.flush()
        line = self._stdout.readline()
        if not line:
            return Outcome(
                seed=task.seed,
                title="",
                digest="",
                event_count=0,
                step_count=0,
                elapsed_ms=0,
                probes={},
                violation=f"the worker ended with {self._process.wait()}",
            )
        return msgspec.json.decode(line, type=Outcome)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        with suppress(BrokenPipeError):
            self._stdin.close()
        self._stdout.close()


Finished = Callable[[int, Outcome], None]
"""Called with the hash seed and what became of a history; from one thread at a time."""


class Crew:
    """Workers, each served by a thread; with one job a single thread serves both hash seeds."""

    def __init__(self, jobs: int) -> None:
        self._jobs = max(jobs, 1)
        self._workers: list[_Worker] = []
        self._is_stopped = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_stopped.set()
        for worker in self._workers:
            worker.close()

    def stop(self) -> None:
        """Begin no more histories."""
        self._is_stopped.set()

    def run(self, tasks: Iterable[Task], finished: Finished) -> None:
        """Run every task under every hash seed."""
        todo: dict[int, queue.SimpleQueue[Task]] = {}
        listed = list(tasks)
        for hash_seed in HASH_SEEDS:
            todo[hash_seed] = queue.SimpleQueue()
            for task in listed:
                is_first = hash_seed == HASH_SEEDS[0]
                todo[hash_seed].put(
                    msgspec.structs.replace(task, is_replayed=task.is_replayed and is_first)
                )
        lock = threading.Lock()

        def tell(hash_seed: int, outcome: Outcome) -> None:
            with lock:
                finished(hash_seed, outcome)

        threads = []
        for number in range(self._jobs):
            mine = HASH_SEEDS if self._jobs == 1 else (HASH_SEEDS[number % len(HASH_SEEDS)],)
            workers = [_Worker(hash_seed) for hash_seed in mine]
            self._workers.extend(workers)
            threads.append(threading.Thread(target=self._serve, args=(workers, todo, tell)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _serve(
        self, workers: list[_Worker], todo: dict[int, queue.SimpleQueue[Task]], tell: Finished
    ) -> None:
        while not self._is_stopped.is_set():
            is_idle = True
            for worker in workers:
                try:
                    task = todo[worker.hash_seed].get_nowait()
                except queue.Empty:
                    continue
                is_idle = False
                tell(worker.hash_seed, worker.run(task))
            if is_idle:
                return
