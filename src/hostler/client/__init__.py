"""The Python client: `Client` for asyncio, `SyncClient` for everything else.

async with Client() as client, client.lease("runners", key="build-42") as lease:
result = await lease.run(["make", "test"])
"""

from hostler.client.archives import ArchiveRefused
from hostler.client.client import TOKEN_VARIABLE, URL_DEFAULT, URL_VARIABLE, Client
from hostler.client.copying import COPY_BYTES_MAX, CopyFailed
from hostler.client.errors import ClientError, Unreachable
from hostler.client.lease import (
    HeldLease,
    LeaseLost,
    LeaseRefused,
    RunFailed,
    RunningCommand,
    RunResult,
)
from hostler.client.sync import SyncClient, SyncLease

__all__ = [
    "COPY_BYTES_MAX",
    "TOKEN_VARIABLE",
    "URL_DEFAULT",
    "URL_VARIABLE",
    "ArchiveRefused",
    "Client",
    "ClientError",
    "CopyFailed",
    "HeldLease",
    "LeaseLost",
    "LeaseRefused",
    "RunFailed",
    "RunResult",
    "RunningCommand",
    "SyncClient",
    "SyncLease",
    "Unreachable",
]
