"""A fleet in this process for programs that block: the asynchronous one in a thread of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hostler.client.background import BackgroundLoop
from hostler.client.blocking import Blocking, blocking
from hostler.client.sync import SyncClient
from hostler.embedded.configuration import Config
from hostler.embedded.fleet import Fleet, Snapshot
from hostler.embedded.life import open_fleet
from hostler.embedded.listeners import Listener, Listening
from hostler.ports.provider import ProviderKind
from hostler.wire.http import NodeView, ReloadView


class SyncListening(Blocking[Listening]):
    """As `Listening`, blocking."""

    close = blocking(Listening.close)

    @property
    def failure_count(self) -> int:
        """As `Listening.failure_count`."""
        return self._twin.failure_count

    @property
    def skipped_count(self) -> int:
        """As `Listening.skipped_count`."""
        return self._twin.skipped_count

    @property
    def position(self) -> int:
        """As `Listening.position`."""
        return self._twin.position


class SyncFleet(SyncClient):
    """As `Fleet`, blocking. Made by `hostler.embedded.open_sync`."""

    def __init__(self, loop: BackgroundLoop, fleet: Fleet) -> None:
        Blocking.__init__(self, loop, fleet)  # not a client of some URL
        self._fleet = fleet

    def reload(self, config: Config | None = None, *, is_dry_run: bool = False) -> ReloadView:
        """As `Fleet.reload`."""
        return self._loop.run(self._fleet.reload(config, is_dry_run=is_dry_run))

    def drain(self, *, deadline_ms: int = 30_000) -> list[NodeView]:
        """As `Fleet.drain`."""
        return self._loop.run(self._fleet.drain(deadline_ms=deadline_ms))

    def snapshot(self) -> Snapshot:
        """As `Fleet.snapshot`."""
        return self._loop.run(self._fleet.snapshot())

    def on_event(
        self,
        listener: Listener,
        *,
        kinds: Sequence[str] = (),
        about: str = "",
        after_seq: int | None = None,
    ) -> SyncListening:
        """As `Fleet.on_event`."""

        async def begin() -> Listening:
            return self._fleet.on_event(listener, kinds=kinds, about=about, after_seq=after_seq)

        return SyncListening(self._loop, self._loop.run(begin()))


@contextmanager
def open_sync(
    config: Config,
    *,
    store: str | os.PathLike[str] | None = None,
    providers: Sequence[ProviderKind] = (),
    principal: str = "embedded",
    ends_machines: bool = False,
) -> Iterator[SyncFleet]:
    """As `hostler.embedded.open`, blocking: the fleet works in a thread of its own."""
    loop = BackgroundLoop()
    try:
        life = open_fleet(
            config,
            store=store,
            providers=providers,
            principal=principal,
            ends_machines=ends_machines,
        )
        fleet = loop.run(life.__aenter__())
        try:
            yield SyncFleet(loop, fleet)
        except BaseException as error:
            loop.close_iterations()
            loop.run(life.__aexit__(type(error), error, error.__traceback__))
            raise
        loop.close_iterations()
        loop.run(life.__aexit__(None, None, None))
    finally:
        loop.stop()
