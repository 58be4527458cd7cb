"""A fleet within one Python program: the engine of the server, called without a network.

import hostler.embedded

async with hostler.embedded.open("hostler.yaml") as fleet:
    async with fleet.lease("runners", key="build-42") as lease:
        result = await lease.run(["make", "test"])
"""

from hostler.core.events import EventKind
from hostler.embedded.configuration import Config
from hostler.embedded.fleet import Fleet, Snapshot
from hostler.embedded.life import open_fleet as open  # noqa: A004 - as of gzip and tarfile
from hostler.embedded.listeners import Listener, Listening
from hostler.embedded.sync import SyncFleet, SyncListening, open_sync

__all__ = [
    "Config",
    "EventKind",
    "Fleet",
    "Listener",
    "Listening",
    "Snapshot",
    "SyncFleet",
    "SyncListening",
    "open",
    "open_sync",
]
