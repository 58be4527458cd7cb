"""Picks a store by its url."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote

from hostler.ports.store import Store, StoreRefused
from hostler.store.memory import MemoryStore

_SQLITE: Final = "sqlite:///"


async def open_store(url: str) -> Store:
    """Open the store at `url`, creating or upgrading it where that is needed.

    `memory:` forgets everything with the process. `sqlite:///hostler.db` is a file in the working
    folder, `sqlite:////var/lib/hostler/hostler.db` (four slashes) one at an absolute path.

    Raises:
        StoreRefused: The url or the file is not usable as it stands; tell the operator.
        StoreFull: There is no room to create or upgrade it.
        StoreFailed: The disk does not answer as it should.
    """
    if url == "memory:":
        return MemoryStore()
    path = unquote(url.removeprefix(_SQLITE))
    if not url.startswith(_SQLITE) or not path:
        raise StoreRefused(
            "store_url_invalid",
            "the store must be memory: or sqlite:///PATH",
            url=url,
        )
    # Deferred, because a fleet in memory should not pay for loading SQLAlchemy.
    from hostler.store.sqlite.store import SqliteStore  # noqa: PLC0415  # see the comment above

    return await SqliteStore.open(Path(path))
