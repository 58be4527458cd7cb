"""A process that commits as fast as it can until somebody kills it, for the crash tests of stores.

Run as `python -m hostler.testing.doomed_writer MODULE:OPENER URL`; it prints the revision of every
commit once that has been acknowledged. Each commit rewrites all of a few records with its own
revision, so that a commit of which only a part is there shows.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from hostler.base.errors import Defect, check
from hostler.ports.store import Change, Commit, JournalRow, Loaded, Store, StoredEvent

RECORDS_PER_COMMIT: Final = 20
"""Enough for a commit to touch several pages of a database."""

BODY_BYTES: Final = 3_000
"""Large enough that these records do not share one page."""


def doomed_commits(loaded: Loaded, leader_epoch: int) -> Iterator[Commit]:
    """Yield commits that follow on `loaded`, without end."""
    revision, seq = loaded.revision, loaded.event_seq
    while True:
        revision, seq = revision + 1, seq + 1
        body = str(revision).rjust(BODY_BYTES).encode()
        yield Commit(
            revision=revision,
            now_ms=revision,
            leader_epoch=leader_epoch,
            changes=[
                *(Change("twin", f"t-{number}", body) for number in range(RECORDS_PER_COMMIT)),
                Change("trail", f"r-{revision}", body),
                Change("trail", f"r-{revision - 1}", None),
            ],
            events=[StoredEvent(seq, revision, body)],
            journal=JournalRow(revision, revision, body),
        )


async def check_whole(store: Store, acknowledged_revision: int) -> None:
    """Check that a store holds every acknowledged doomed commit, and no part of another.

    Raises:
        Defect: It does not; the store under test is wrong.
    """
    loaded = await store.load()
    revision = loaded.revision
    # The one that was under way when the writer died may or may not have happened.
    check(
        acknowledged_revision <= revision <= acknowledged_revision + 1,
        "commits_lost",
        "the store does not stand at the last acknowledged commit or the one after it",
        acknowledged_revision=acknowledged_revision,
        revision=revision,
    )
    body = str(revision).rjust(BODY_BYTES).encode()
    whole = {
        "trail": {f"r-{revision}": body},
        "twin": {f"t-{number}": body for number in range(RECORDS_PER_COMMIT)},
    }
    check(loaded.records == whole, "commit_torn", "a commit is there in part", revision=revision)
    events = await store.events(revision - 1, 10)
    rows = await store.journal(revision, 10)
    check(
        events == [StoredEvent(revision, revision, body)]
        and rows == [JournalRow(revision, revision, body)]
        and loaded.event_seq == revision,
        "commit_torn",
        "the events or the journal of a commit are there in part",
        revision=revision,
    )


async def kill_while_committing(opener: str, url: str, *, acknowledged_count: int) -> int:
    """Start a doomed writer, kill -9 it after some commits; return the last acknowledged revision.

    Args:
        opener: `module:function` of what opens a store by url.
        url: Where the store is; nobody else has it open.
        acknowledged_count: How many commits to wait for; the next one is then under way.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, opener, url, stdout=asyncio.subprocess.PIPE
    )
    output = process.stdout
    if output is None:
        raise Defect("no_output", "the writer's output is not connected")
    lines = [await output.readline() for _ in range(acknowledged_count)]
    process.kill()
    # Acknowledged is whatever it had said before it died, not only what we had read by then.
    lines += (await output.read()).splitlines(keepends=True)
    await process.wait()
    said = [int(line) for line in lines if line.endswith(b"\n")]
    check(said, "writer_failed", "the writer ended before its first commit", url=url)
    return said[-1]


async def _main(opener: str, url: str) -> None:
    module, _, function = opener.partition(":")
    open_store: Callable[[str], Awaitable[Store]] = getattr(
        importlib.import_module(module), function
    )
    store = await open_store(url)
    leader_epoch = await store.claim()
    for commit in doomed_commits(await store.load(), leader_epoch):
        await store.commit(commit)
        print(commit.revision, flush=True)  # noqa: T201  # this is what the parent listens to


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
