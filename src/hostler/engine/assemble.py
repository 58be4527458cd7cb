"""Assembling: an engine out of an address of a store and a folder.

Used by the server and by programs that embed an engine. Whoever assembles one may attach agents to
it, starts it, waits until it has stopped, and stops it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hostler.engine.boundaries import BoundaryHook, pass_by
from hostler.engine.clock import SystemClock
from hostler.engine.engine import Engine
from hostler.engine.keys import Keys
from hostler.ports.clock import Clock
from hostler.ports.provider import ProviderKind
from hostler.providers.registry import Registry
from hostler.store.open import open_store

MEMORY_URL: Final = "memory:"


@dataclass(frozen=True)
class EngineOptions:
    """What an engine is made from.

    Attributes:
        store_url: `sqlite:///PATH` or `memory:`.
        folder: The server's data folder: its key and its providers' files live there.
        server_url: Where agents on launched machines find the server.
        providers: Providers besides those that are installed, by name.
        clock: What time it is.
        boundary: Told of every durable boundary; for crash tests.
    """

    store_url: str
    folder: Path
    server_url: str
    providers: Mapping[str, ProviderKind] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    boundary: BoundaryHook = pass_by


async def assemble(options: EngineOptions) -> Engine:
    """Build an engine; it does nothing until it is started.

    Raises:
        Rejected: The store or the key cannot be used as they stand; tell the operator.
        Failed: The disk does not answer as it should.
    """
    keys = (
        Keys.ephemeral()
        if options.store_url == MEMORY_URL
        else Keys.open(options.folder / "server.key")
    )
    return Engine(
        await open_store(options.store_url),
        Registry(options.folder / "providers", options.clock, options.providers),
        keys,
        options.clock,
        server_url=options.server_url,
        boundary=options.boundary,
    )
