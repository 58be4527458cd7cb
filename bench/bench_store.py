"""The embedded store: what a commit costs, and how fast a large fleet is read back."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Final

from bench.registry import at_most, benchmark, percentile, stopwatch
from hostler.base.rng import Stream
from hostler.ports.store import Change, Commit, JournalRow, Store, StoredEvent
from hostler.store.open import open_store

COMMITS: Final = 500
RECORDS: Final = 110_000
"""A fleet of 10,000 nodes and 100,000 allocations."""
BODY_BYTES: Final = 600
"""About a node or an allocation as JSON."""


@asynccontextmanager
async def _filled_store(folder: Path, record_count: int) -> AsyncIterator[Store]:
    store = await open_store(f"sqlite:///{folder}/hostler.db")
    body = _body(0, BODY_BYTES)
    changes = [Change("allocation", f"a-{number:06d}", body) for number in range(record_count)]
    await store.commit(Commit(1, 0, 0, changes))
    try:
        yield store
    finally:
        await store.close()


def _body(number: int, size_bytes: int) -> bytes:
    """Return a body that differs from number to number: SQLite does not write what is the same."""
    return str(number).encode().ljust(size_bytes, b".")


def _commits(record_count: int) -> Iterator[Commit]:
    """Yield commits of eight changes, two events and a journal row, from revision 2 on."""
    stream = Stream(1, "commits")
    for revision in count(2):
        touched = [f"a-{stream.below(record_count):06d}" for _ in range(6)]
        body = _body(revision, BODY_BYTES)
        yield Commit(
            revision=revision,
            now_ms=revision,
            leader_epoch=0,
            changes=[
                *(Change("allocation", key, body) for key in touched),
                Change("lease", f"l-{revision}", body),
                Change("lease", f"l-{revision - 1}", None),
            ],
            events=[
                StoredEvent(2 * revision + number, revision, _body(number, 200))
                for number in range(2)
            ],
            journal=JournalRow(revision, revision, _body(revision, 1_500)),
        )


async def _commit_times_us(folder: Path) -> list[float]:
    async with _filled_store(folder, RECORDS) as store:
        times_us = []
        commits = _commits(RECORDS)
        for _ in range(COMMITS):
            commit = next(commits)
            began_s = time.perf_counter()
            await store.commit(commit)
            times_us.append((time.perf_counter() - began_s) * 1e6)
        return times_us


@benchmark("store_commit_p50", unit="us", budget=at_most(1_500))
async def commit_p50(scratch: Path) -> float:
    """One commit of eight changes in a store of 110,000 records, waited for."""
    return percentile(await _commit_times_us(scratch), 50)


@benchmark("store_commit_p99", unit="us")
async def commit_p99(scratch: Path) -> float:
    """The same, where now and then the WAL is moved into the file."""
    return percentile(await _commit_times_us(scratch), 99)


@benchmark("store_commit_sqlite_alone_p50", unit="us")
def commit_sqlite_alone_p50(scratch: Path) -> float:
    """The same rows through `sqlite3` and nothing else: what no store of ours can beat."""
    with closing(sqlite3.connect(scratch / "bare.db", isolation_level=None)) as connection:
        run = connection.execute
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("CREATE TABLE records (kind TEXT, key TEXT, body BLOB, UNIQUE (kind, key))")
        run("CREATE TABLE events (seq INTEGER PRIMARY KEY, at_ms INTEGER, body BLOB)")
        run("CREATE TABLE journal (revision INTEGER PRIMARY KEY, now_ms INTEGER, body BLOB)")
        put = (
            "INSERT INTO records VALUES (?, ?, ?)"
            " ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body"
        )
        body = _body(0, BODY_BYTES)
        run("BEGIN")
        connection.executemany(
            put, (("allocation", f"a-{number:06d}", body) for number in range(RECORDS))
        )
        run("COMMIT")
        times_us = []
        commits = _commits(RECORDS)
        for _ in range(COMMITS):
            commit = next(commits)
            rows = [(change.kind, change.key, change.body) for change in commit.changes]
            began_s = time.perf_counter()
            run("BEGIN IMMEDIATE")
            connection.executemany(put, rows[:-1])
            run("DELETE FROM records WHERE kind = ? AND key = ?", rows[-1][:2])
            events = [(event.seq, event.at_ms, event.body) for event in commit.events]
            connection.executemany("INSERT INTO events VALUES (?, ?, ?)", events)
            journal = (commit.revision, commit.now_ms, _body(commit.revision, 1_500))
            run("INSERT INTO journal VALUES (?, ?, ?)", journal)
            run("COMMIT")
            times_us.append((time.perf_counter() - began_s) * 1e6)
    return percentile(times_us, 50)


@benchmark("store_load_110k_records", unit="s", budget=at_most(2))
async def load_110k_records(scratch: Path) -> float:
    """Open a store of 110,000 records and load it."""
    async with _filled_store(scratch, RECORDS):
        pass
    with stopwatch() as watch:
        store = await open_store(f"sqlite:///{scratch}/hostler.db")
        await store.load()
    await store.close()
    return watch.seconds
