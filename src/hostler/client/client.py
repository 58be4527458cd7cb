"""The asynchronous client: one method for each thing that the API does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar, Unpack

from hostler.client import bundle_calls, calls, streams
from hostler.client.acquiring import acquire
from hostler.client.bundle_client import BundleClient
from hostler.client.http_transport import HttpTransport
from hostler.client.lease import HeldLease
from hostler.client.paging import PAGE_COUNT
from hostler.client.questions import Questions
from hostler.client.transport import RETRY_MS, TIMEOUT_MS, Transport
from hostler.client.wishes import LeaseWishes, OnWaiting, asked_for
from hostler.wire.documents import MaintenanceDocument
from hostler.wire.documents.config import PORT_DEFAULT
from hostler.wire.http import (
    AcquireRequest,
    AllocationView,
    CreatedToken,
    CreateTokenRequest,
    EventView,
    LeasePlanView,
    LeaseView,
    MaintenanceView,
    NodeView,
    PoolView,
    ReloadView,
    TokenView,
)

V = TypeVar("V")

URL_DEFAULT: Final = f"http://127.0.0.1:{PORT_DEFAULT}"
URL_VARIABLE: Final = "HOSTLER_SERVER"
TOKEN_VARIABLE: Final = "HOSTLER_TOKEN"


class Client(BundleClient, Questions):
    """Talks to one server. Use as `async with Client() as client`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        tls_ca: Path | None = None,
        timeout_ms: int = TIMEOUT_MS,
        retry_ms: int = RETRY_MS,
        transport: Transport | None = None,
    ) -> None:
        """Make a client; nothing is connected yet.

        Args:
            url: Of the server; else `$HOSTLER_SERVER`, else this machine's default port.
            token: Secret of a token; else `$HOSTLER_TOKEN`, else none.
            tls_ca: Certificates to trust instead of the system's, as a PEM file.
            timeout_ms: Longest time for an answer.
            retry_ms: How long to try again while the server is away or overloaded; 0 for not.
            transport: How requests get there, instead of all of the above.
        """
        self._transport = transport or HttpTransport(
            url or os.environ.get(URL_VARIABLE) or URL_DEFAULT,
            token=token or os.environ.get(TOKEN_VARIABLE),
            tls_ca=tls_ca,
            timeout_ms=timeout_ms,
            retry_ms=retry_ms,
        )

    @property
    def url(self) -> str:
        """The server's URL."""
        return self._transport.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    # -- the fleet -------------------------------------------------------------------------------

    def events(
        self,
        *,
        after_seq: int | None = None,
        tail: int = 0,
        kinds: Sequence[str] = (),
        about: str = "",
        follow: bool = True,
    ) -> AsyncIterator[EventView]:
        """Yield committed events, going on after breaks without loss or repeat.

        Args:
            after_seq: Position to begin after; else `tail` events ago.
            tail: How many past events to begin with, when there is no position.
            kinds: Only these.
            about: Only those about this id.
            follow: False ends with the newest event that there is.

        Raises:
            ClientError: Code `events_gone` when the position is no longer kept.
        """
        stream = streams.EventStream(
            self._transport,
            after_seq=after_seq,
            tail=tail,
            kinds=kinds,
            about=about,
            follow=follow,
        )
        return aiter(stream)

    async def reload_config(self, *, is_dry_run: bool = False, digest: str = "") -> ReloadView:
        """Have the server read its configuration file again, and say what that changes.

        Args:
            is_dry_run: Change nothing.
            digest: Of a dry run: apply only the text that it has shown.
        """
        return await self._transport.send(calls.reload_config(is_dry_run=is_dry_run, digest=digest))

    # -- allocations -----------------------------------------------------------------------------

    async def allocations(
        self,
        *,
        bundle: str | None = None,
        node: str | None = None,
        include_ended: bool = False,
    ) -> list[AllocationView]:
        """Return live allocations, and with `include_ended` those still remembered."""
        return await self._all(
            lambda cursor: bundle_calls.allocations(
                limit=PAGE_COUNT,
                cursor=cursor,
                bundle=bundle,
                node=node,
                include_ended=include_ended,
            )
        )

    async def allocation(self, allocation_id: str) -> AllocationView:
        """Return one allocation."""
        return await self._transport.send(bundle_calls.allocation(allocation_id))

    def logs(
        self, target: str, *, follow: bool = False, tail_bytes: int | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the log of an allocation, or of the latest one of a replica (`bundle/job/0`)."""
        kind = "replicas" if "/" in target else "allocations"
        return streams.logs(
            self._transport, f"/v1/{kind}/{target}/logs", follow=follow, tail_bytes=tail_bytes
        )

    # -- nodes and pools -------------------------------------------------------------------------

    async def nodes(
        self, *, pool: str | None = None, phase: str | None = None, include_retired: bool = False
    ) -> list[NodeView]:
        """Return all nodes, or those of one pool or phase."""
        return await self._all(
            lambda cursor: calls.nodes(
                limit=PAGE_COUNT,
                cursor=cursor,
                pool=pool,
                phase=phase,
                include_retired=include_retired,
            )
        )

    async def node(self, node_id: str) -> NodeView:
        """Return one node."""
        return await self._transport.send(calls.node(node_id))

    async def cordon_node(self, node_id: str, reason: str = "") -> NodeView:
        """Let nothing new onto a node."""
        return await self._transport.send(calls.cordon_node(node_id, reason))

    async def end_orphan(self, node_id: str) -> NodeView:
        """End a machine that was held back because nobody knows whose it is."""
        return await self._transport.send(calls.end_orphan(node_id))

    async def label_node(self, node_id: str, labels: dict[str, str]) -> NodeView:
        """Give a node labels; an empty value takes one away."""
        return await self._transport.send(calls.label_node(node_id, labels))

    async def add_maintenance(self, document: MaintenanceDocument) -> MaintenanceView:
        """Plan a maintenance besides those of the configuration, until it is over or removed."""
        return await self._transport.send(calls.add_maintenance(document))

    async def remove_maintenance(self, name: str) -> MaintenanceView:
        """Call off a maintenance that was added, and return what it was."""
        return await self._transport.send(calls.remove_maintenance(name))

    async def uncordon_node(self, node_id: str) -> NodeView:
        """Let new work onto a node again; ends its drain too."""
        return await self._transport.send(calls.uncordon_node(node_id))

    async def drain_node(
        self,
        node_id: str,
        *,
        deadline_ms: int = 600_000,
        is_forced: bool = False,
        then_retire: bool = False,
    ) -> NodeView:
        """Cordon a node and move what is there; by force, stop at the deadline what is left."""
        return await self._transport.send(
            calls.drain_node(node_id, deadline_ms, is_forced=is_forced, then_retire=then_retire)
        )

    async def confirm_lost(self, node_id: str) -> NodeView:
        """Say that a silent node is really gone, so that the brake does not hold it."""
        return await self._transport.send(calls.confirm_lost(node_id))

    async def pools(self) -> list[PoolView]:
        """Return all pools."""
        return await self._all(lambda cursor: calls.pools(limit=PAGE_COUNT, cursor=cursor))

    async def pool(self, name: str) -> PoolView:
        """Return one pool."""
        return await self._transport.send(calls.pool(name))

    async def retry_pool(self, name: str) -> PoolView:
        """Launch again in a pool what lately failed."""
        return await self._transport.send(calls.retry_pool(name))

    # -- leases ----------------------------------------------------------------------------------

    async def leases(
        self, *, pool: str | None = None, phase: str | None = None, include_ended: bool = False
    ) -> list[LeaseView]:
        """Return leases that are held or wait in line; with `include_ended` the others too."""
        return await self._all(
            lambda cursor: calls.leases(
                limit=PAGE_COUNT,
                cursor=cursor,
                pool=pool,
                phase=phase,
                include_ended=include_ended,
            )
        )

    async def lease_view(self, lease_id: str) -> LeaseView:
        """Return one lease as it is."""
        return await self._transport.send(calls.lease(lease_id))

    async def heartbeat_lease(self, lease_id: str, epoch: int) -> LeaseView:
        """Renew a lease that this program does not hold as an object."""
        return await self._transport.send(calls.heartbeat_lease(lease_id, epoch))

    async def request_lease(self, asked: AcquireRequest) -> LeaseView:
        """Ask for a slot and return at once, or after `wait_ms`: held by nobody's heartbeats."""
        return await self._transport.send(calls.acquire_lease(asked))

    async def plan_lease(self, asked: AcquireRequest) -> LeasePlanView:
        """Say what would become of a request for a slot; changes nothing."""
        return await self._transport.send(calls.plan_lease(asked))

    async def extend_lease(self, lease_id: str, epoch: int, by_ms: int) -> LeaseView:
        """Stay longer on a node that is to go."""
        return await self._transport.send(calls.extend_lease(lease_id, epoch, by_ms))

    async def release_lease(
        self, lease_id: str, *, is_healthy: bool = True, detail: str = ""
    ) -> LeaseView:
        """Settle a lease that this program does not hold as an object."""
        return await self._transport.send(
            calls.release_lease(lease_id, is_healthy=is_healthy, detail=detail)
        )

    async def revoke_lease(self, lease_id: str, detail: str = "") -> LeaseView:
        """Take a lease away from its holder."""
        return await self._transport.send(calls.revoke_lease(lease_id, detail))

    async def acquire(
        self, asked: AcquireRequest, *, on_waiting: OnWaiting | None = None
    ) -> HeldLease:
        """Wait in line for a slot and return the held lease; the caller releases it.

        Args:
            asked: What is wanted; its `wait_ms` is set here.
            on_waiting: Told whenever it still waits, with the reason.

        Raises:
            LeaseRefused: Timed out, overloaded, or it can never be had.
        """
        return await acquire(self._transport, asked, on_waiting)

    def adopt(self, view: LeaseView) -> HeldLease:
        """Take over a held lease that another program was granted; renews it from now on."""
        return HeldLease(self._transport, view)

    @asynccontextmanager
    async def lease(
        self, pool: str, *, on_waiting: OnWaiting | None = None, **wanted: Unpack[LeaseWishes]
    ) -> AsyncIterator[HeldLease]:
        """Hold a warm node for the block, with heartbeats in the background.

        At the end it is released: as poison when the node could not run a command or `poison` was
        called, otherwise as healthy, whatever the commands said.

        Args:
            pool: Where to lease from.
            on_waiting: Told whenever it still waits, with the reason.
            wanted: What else is wanted, by name (`LeaseWishes`).

        Raises:
            LeaseRefused: It was not granted.
        """
        held = await self.acquire(asked_for(pool, wanted), on_waiting=on_waiting)
        try:
            yield held
        finally:
            await asyncio.shield(held.release())

    # -- tokens ----------------------------------------------------------------------------------

    async def create_token(self, asked: CreateTokenRequest) -> CreatedToken:
        """Make a token; its secret is in the answer and nowhere else."""
        return await self._transport.send(calls.create_token(asked))

    async def tokens(self) -> list[TokenView]:
        """Return all tokens."""
        return await self._all(lambda cursor: calls.tokens(limit=PAGE_COUNT, cursor=cursor))

    async def revoke_token(self, token_id: str) -> TokenView:
        """Make a token worthless."""
        return await self._transport.send(calls.revoke_token(token_id))
