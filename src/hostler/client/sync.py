"""The blocking client: the asynchronous one on an event loop in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self, Unpack

from hostler.client.background import BackgroundLoop
from hostler.client.blocking import Blocking, blocking, iterating
from hostler.client.client import Client
from hostler.client.lease import HeldLease
from hostler.client.transport import RETRY_MS, TIMEOUT_MS
from hostler.client.wishes import LeaseWishes, OnWaiting, asked_for
from hostler.wire.http import AcquireRequest, LeaseView


class SyncLease(Blocking[HeldLease]):
    """As `HeldLease`, blocking. Callbacks run in the client's thread."""

    @property
    def view(self) -> LeaseView:
        """The lease as the server last told it."""
        return self._twin.view

    @property
    def lease_id(self) -> str:
        """The lease's id."""
        return self._twin.lease_id

    @property
    def node_id(self) -> str:
        """The node that is held."""
        return self._twin.node_id

    @property
    def retiring_at_ms(self) -> int | None:
        """As `HeldLease.retiring_at_ms`."""
        return self._twin.retiring_at_ms

    def poison(self, detail: str) -> None:
        """Have the lease settled as poison."""
        self._twin.poison(detail)

    heartbeat = blocking(HeldLease.heartbeat)
    extend = blocking(HeldLease.extend)
    release = blocking(HeldLease.release)
    run = blocking(HeldLease.run)
    copy_in = blocking(HeldLease.copy_in)
    copy_out = blocking(HeldLease.copy_out)


class SyncClient(Blocking[Client]):
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
        loop = BackgroundLoop()

        async def make() -> Client:
            return Client(url, token=token, tls_ca=tls_ca, timeout_ms=timeout_ms, retry_ms=retry_ms)

        super().__init__(loop, loop.run(make()))

    @property
    def url(self) -> str:
        """The server's URL."""
        return self._twin.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections and end the thread."""
        self._loop.close_iterations()
        self._loop.run(self._twin.close())
        self._loop.stop()

    def acquire(self, asked: AcquireRequest, *, on_waiting: OnWaiting | None = None) -> SyncLease:
        """As `Client.acquire`."""
        return SyncLease(
            self._loop, self._loop.run(self._twin.acquire(asked, on_waiting=on_waiting))
        )

    def adopt(self, view: LeaseView) -> SyncLease:
        """As `Client.adopt`."""

        async def take_over() -> HeldLease:
            return self._twin.adopt(view)

        return SyncLease(self._loop, self._loop.run(take_over()))

    @contextmanager
    def lease(
        self, pool: str, *, on_waiting: OnWaiting | None = None, **wanted: Unpack[LeaseWishes]
    ) -> Iterator[SyncLease]:
        """As `Client.lease`."""
        held = self.acquire(asked_for(pool, wanted), on_waiting=on_waiting)
        try:
            yield held
        finally:
            held.release()

    events = iterating(Client.events)
    logs = iterating(Client.logs)

    # -- the fleet -----------------------------------------------------------------------------

    status = blocking(Client.status)
    config = blocking(Client.config)
    explain = blocking(Client.explain)
    windows = blocking(Client.windows)
    maintenance = blocking(Client.maintenance)
    add_maintenance = blocking(Client.add_maintenance)
    remove_maintenance = blocking(Client.remove_maintenance)
    services = blocking(Client.services)
    service = blocking(Client.service)
    pending = blocking(Client.pending)
    spend = blocking(Client.spend)
    budgets = blocking(Client.budgets)
    audit = blocking(Client.audit)
    audit_after = blocking(Client.audit_after)
    life = blocking(Client.life)
    reload_config = blocking(Client.reload_config)

    # -- bundles -------------------------------------------------------------------------------

    submit_bundle = blocking(Client.submit_bundle)
    plan_bundle = blocking(Client.plan_bundle)
    bundles = blocking(Client.bundles)
    bundle = blocking(Client.bundle)
    delete_bundle = blocking(Client.delete_bundle)
    start_job = blocking(Client.start_job)
    stop_job = blocking(Client.stop_job)
    configure_job = blocking(Client.configure_job)
    reset_bundle = blocking(Client.reset_bundle)
    reset_replica = blocking(Client.reset_replica)
    rollout = blocking(Client.rollout)
    steer_rollout = blocking(Client.steer_rollout)
    upcoming = blocking(Client.upcoming)
    replicas = blocking(Client.replicas)
    replica = blocking(Client.replica)

    # -- allocations ---------------------------------------------------------------------------

    allocations = blocking(Client.allocations)
    allocation = blocking(Client.allocation)

    # -- nodes and pools -----------------------------------------------------------------------

    nodes = blocking(Client.nodes)
    node = blocking(Client.node)
    cordon_node = blocking(Client.cordon_node)
    end_orphan = blocking(Client.end_orphan)
    label_node = blocking(Client.label_node)
    uncordon_node = blocking(Client.uncordon_node)
    drain_node = blocking(Client.drain_node)
    confirm_lost = blocking(Client.confirm_lost)
    pools = blocking(Client.pools)
    pool = blocking(Client.pool)
    retry_pool = blocking(Client.retry_pool)

    # -- leases --------------------------------------------------------------------------------

    leases = blocking(Client.leases)
    lease_view = blocking(Client.lease_view)
    heartbeat_lease = blocking(Client.heartbeat_lease)
    request_lease = blocking(Client.request_lease)
    plan_lease = blocking(Client.plan_lease)
    extend_lease = blocking(Client.extend_lease)
    release_lease = blocking(Client.release_lease)
    revoke_lease = blocking(Client.revoke_lease)

    # -- tokens --------------------------------------------------------------------------------

    create_token = blocking(Client.create_token)
    tokens = blocking(Client.tokens)
    revoke_token = blocking(Client.revoke_token)
