"""The blocking client: the asynchronous one on an event loop in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar, Unpack

from hostler.client.background import BackgroundLoop
from hostler.client.client import Client
from hostler.client.lease import HeldLease, Output, RunResult
from hostler.client.sync_bundles import SyncBundleClient
from hostler.client.transport import RETRY_MS, TIMEOUT_MS
from hostler.client.wishes import LeaseWishes, OnWaiting, asked_for
from hostler.wire.http import (
    AcquireRequest,
    AllocationView,
    BudgetLineView,
    ConfigView,
    CreatedToken,
    CreateTokenRequest,
    EventView,
    ExplainView,
    LeasePlanView,
    LeaseView,
    MaintenanceView,
    NodeView,
    PendingView,
    PoolView,
    ReloadView,
    ServiceView,
    SpendView,
    StatusView,
    TokenView,
    WindowComingView,
)

T = TypeVar("T")


class SyncLease:
    """As `HeldLease`, blocking."""

    def __init__(self, loop: BackgroundLoop, held: HeldLease) -> None:
        self._loop = loop
        self._held = held

    @property
    def view(self) -> LeaseView:
        """The lease as the server last told it."""
        return self._held.view

    @property
    def lease_id(self) -> str:
        """The lease's id."""
        return self._held.lease_id

    @property
    def node_id(self) -> str:
        """The node that is held."""
        return self._held.node_id

    def poison(self, detail: str) -> None:
        """Have the lease settled as poison."""
        self._held.poison(detail)

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
        on_output: Output | None = None,
    ) -> RunResult:
        """As `HeldLease.run`. The callback runs in the client's thread."""
        return self._loop.run(
            self._held.run(argv, env=env, cwd=cwd, stdin=stdin, on_output=on_output)
        )


class SyncClient(SyncBundleClient):
    """Talks to one server, blocking. Use as `with SyncClient() as client`. See `Client`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        tls_ca: Path | None = None,
        timeout_ms: int = TIMEOUT_MS,
        retry_ms: int = RETRY_MS,
    ) -> None:
        self._loop = BackgroundLoop()

        async def make() -> Client:
            return Client(url, token=token, tls_ca=tls_ca, timeout_ms=timeout_ms, retry_ms=retry_ms)

        self._client = self._loop.run(make())

    @property
    def url(self) -> str:
        """The server's URL."""
        return self._client.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and end the thread."""
        self._loop.close_iterations()
        self._loop.run(self._client.close())
        self._loop.stop()

    def status(self) -> StatusView:
        """As `Client.status`."""
        return self._loop.run(self._client.status())

    def config(self) -> ConfigView:
        """As `Client.config`."""
        return self._loop.run(self._client.config())

    def reload_config(self, *, is_dry_run: bool = False, digest: str = "") -> ReloadView:
        """As `Client.reload_config`."""
        return self._loop.run(self._client.reload_config(is_dry_run=is_dry_run, digest=digest))

    def explain(
        self,
        about: str,
        *,
        node: str | None = None,
        at_event: int | None = None,
        at_revision: int | None = None,
        given: Sequence[str] = (),
    ) -> ExplainView:
        """As `Client.explain`."""
        asked = self._client.explain(
            about, node=node, at_event=at_event, at_revision=at_revision, given=given
        )
        return self._loop.run(asked)

    def pending(self) -> PendingView:
        """As `Client.pending`."""
        return self._loop.run(self._client.pending())

    def events(
        self,
        *,
        after_seq: int | None = None,
        tail: int = 0,
        kinds: Sequence[str] = (),
        about: str = "",
        follow: bool = True,
    ) -> Iterator[EventView]:
        """As `Client.events`."""
        return self._loop.iterate(
            self._client.events(
                after_seq=after_seq, tail=tail, kinds=kinds, about=about, follow=follow
            )
        )

    def allocations(
        self,
        *,
        bundle: str | None = None,
        node: str | None = None,
        include_ended: bool = False,
    ) -> list[AllocationView]:
        """As `Client.allocations`."""
        return self._loop.run(
            self._client.allocations(bundle=bundle, node=node, include_ended=include_ended)
        )

    def allocation(self, allocation_id: str) -> AllocationView:
        """As `Client.allocation`."""
        return self._loop.run(self._client.allocation(allocation_id))

    def logs(
        self, target: str, *, follow: bool = False, tail_bytes: int | None = None
    ) -> Iterator[bytes]:
        """As `Client.logs`."""
        return self._loop.iterate(self._client.logs(target, follow=follow, tail_bytes=tail_bytes))

    def nodes(
        self, *, pool: str | None = None, phase: str | None = None, include_retired: bool = False
    ) -> list[NodeView]:
        """As `Client.nodes`."""
        work = self._client.nodes(pool=pool, phase=phase, include_retired=include_retired)
        return self._loop.run(work)

    def node(self, node_id: str) -> NodeView:
        """As `Client.node`."""
        return self._loop.run(self._client.node(node_id))

    def cordon_node(self, node_id: str, reason: str = "") -> NodeView:
        """As `Client.cordon_node`."""
        return self._loop.run(self._client.cordon_node(node_id, reason))

    def end_orphan(self, node_id: str) -> NodeView:
        """As `Client.end_orphan`."""
        return self._loop.run(self._client.end_orphan(node_id))

    def label_node(self, node_id: str, labels: dict[str, str]) -> NodeView:
        """As `Client.label_node`."""
        return self._loop.run(self._client.label_node(node_id, labels))

    def uncordon_node(self, node_id: str) -> NodeView:
        """As `Client.uncordon_node`."""
        return self._loop.run(self._client.uncordon_node(node_id))

    def confirm_lost(self, node_id: str) -> NodeView:
        """As `Client.confirm_lost`."""
        return self._loop.run(self._client.confirm_lost(node_id))

    def drain_node(
        self,
        node_id: str,
        *,
        deadline_ms: int = 600_000,
        is_forced: bool = False,
        then_retire: bool = False,
    ) -> NodeView:
        """As `Client.drain_node`."""
        return self._loop.run(
            self._client.drain_node(
                node_id, deadline_ms=deadline_ms, is_forced=is_forced, then_retire=then_retire
            )
        )

    def spend(
        self,
        *,
        by: str = "pool",
        since: str | None = None,
        until: str | None = None,
        pool: str | None = None,
    ) -> list[SpendView]:
        """As `Client.spend`."""
        return self._loop.run(self._client.spend(by=by, since=since, until=until, pool=pool))

    def budgets(self) -> list[BudgetLineView]:
        """As `Client.budgets`."""
        return self._loop.run(self._client.budgets())

    def pools(self) -> list[PoolView]:
        """As `Client.pools`."""
        return self._loop.run(self._client.pools())

    def pool(self, name: str) -> PoolView:
        """As `Client.pool`."""
        return self._loop.run(self._client.pool(name))

    def services(self) -> list[ServiceView]:
        """As `Client.services`."""
        return self._loop.run(self._client.services())

    def service(self, name: str) -> ServiceView:
        """As `Client.service`."""
        return self._loop.run(self._client.service(name))

    def retry_pool(self, name: str) -> PoolView:
        """As `Client.retry_pool`."""
        return self._loop.run(self._client.retry_pool(name))

    def maintenance(self) -> list[MaintenanceView]:
        """As `Client.maintenance`."""
        return self._loop.run(self._client.maintenance())

    def windows(self, *, pool: str | None = None) -> list[WindowComingView]:
        """As `Client.windows`."""
        return self._loop.run(self._client.windows(pool=pool))

    def leases(self, *, pool: str | None = None, include_ended: bool = False) -> list[LeaseView]:
        """As `Client.leases`."""
        return self._loop.run(self._client.leases(pool=pool, include_ended=include_ended))

    def lease_view(self, lease_id: str) -> LeaseView:
        """As `Client.lease_view`."""
        return self._loop.run(self._client.lease_view(lease_id))

    def heartbeat_lease(self, lease_id: str, epoch: int) -> LeaseView:
        """As `Client.heartbeat_lease`."""
        return self._loop.run(self._client.heartbeat_lease(lease_id, epoch))

    def plan_lease(self, asked: AcquireRequest) -> LeasePlanView:
        """As `Client.plan_lease`."""
        return self._loop.run(self._client.plan_lease(asked))

    def extend_lease(self, lease_id: str, epoch: int, by_ms: int) -> LeaseView:
        """As `Client.extend_lease`."""
        return self._loop.run(self._client.extend_lease(lease_id, epoch, by_ms))

    def release_lease(
        self, lease_id: str, *, is_healthy: bool = True, detail: str = ""
    ) -> LeaseView:
        """As `Client.release_lease`."""
        return self._loop.run(
            self._client.release_lease(lease_id, is_healthy=is_healthy, detail=detail)
        )

    def revoke_lease(self, lease_id: str, detail: str = "") -> LeaseView:
        """As `Client.revoke_lease`."""
        return self._loop.run(self._client.revoke_lease(lease_id, detail))

    @contextmanager
    def lease(
        self, pool: str, *, on_waiting: OnWaiting | None = None, **wanted: Unpack[LeaseWishes]
    ) -> Iterator[SyncLease]:
        """As `Client.lease`."""
        asked = asked_for(pool, wanted)
        held = self._loop.run(self._client.acquire(asked, on_waiting=on_waiting))
        try:
            yield SyncLease(self._loop, held)
        finally:
            self._loop.run(held.release())

    def create_token(self, asked: CreateTokenRequest) -> CreatedToken:
        """As `Client.create_token`."""
        return self._loop.run(self._client.create_token(asked))

    def tokens(self) -> list[TokenView]:
        """As `Client.tokens`."""
        return self._loop.run(self._client.tokens())

    def revoke_token(self, token_id: str) -> TokenView:
        """As `Client.revoke_token`."""
        return self._loop.run(self._client.revoke_token(token_id))
