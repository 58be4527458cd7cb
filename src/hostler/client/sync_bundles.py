"""The part of the blocking client that is about bundles and their replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.client.client import Client
from hostler.wire.documents import BundleDocument
from hostler.wire.http import BundleView, PlanView, ReplicaView, RolloutView, UpcomingView

if TYPE_CHECKING:
    from hostler.client.background import BackgroundLoop


class SyncBundleClient:
    """What can be asked of bundles; `SyncClient` adds the rest."""

    _loop: BackgroundLoop
    _client: Client

    def submit_bundle(
        self, document: BundleDocument, *, at: int | None = None, if_generation: int | None = None
    ) -> BundleView:
        """As `Client.submit_bundle`."""
        return self._loop.run(
            self._client.submit_bundle(document, at=at, if_generation=if_generation)
        )

    def plan_bundle(self, document: BundleDocument) -> PlanView:
        """As `Client.plan_bundle`."""
        return self._loop.run(self._client.plan_bundle(document))

    def bundles(self, *, protection: bool = False) -> list[BundleView]:
        """As `Client.bundles`."""
        return self._loop.run(self._client.bundles(protection=protection))

    def bundle(self, bundle_id: str) -> BundleView:
        """As `Client.bundle`."""
        return self._loop.run(self._client.bundle(bundle_id))

    def delete_bundle(self, bundle_id: str) -> BundleView:
        """As `Client.delete_bundle`."""
        return self._loop.run(self._client.delete_bundle(bundle_id))

    def start_job(self, bundle_id: str, job: str) -> BundleView:
        """As `Client.start_job`."""
        return self._loop.run(self._client.start_job(bundle_id, job))

    def stop_job(self, bundle_id: str, job: str) -> BundleView:
        """As `Client.stop_job`."""
        return self._loop.run(self._client.stop_job(bundle_id, job))

    def reset_bundle(self, bundle_id: str) -> BundleView:
        """As `Client.reset_bundle`."""
        return self._loop.run(self._client.reset_bundle(bundle_id))

    def reset_replica(self, replica_id: str) -> ReplicaView:
        """As `Client.reset_replica`."""
        return self._loop.run(self._client.reset_replica(replica_id))

    def rollout(self, bundle_id: str) -> RolloutView:
        """As `Client.rollout`."""
        return self._loop.run(self._client.rollout(bundle_id))

    def steer_rollout(self, bundle_id: str, steering: str) -> RolloutView:
        """As `Client.steer_rollout`."""
        return self._loop.run(self._client.steer_rollout(bundle_id, steering))

    def upcoming(self, *, days: int = 14, bundle: str | None = None) -> list[UpcomingView]:
        """As `Client.upcoming`."""
        return self._loop.run(self._client.upcoming(days=days, bundle=bundle))

    def replicas(self, *, bundle: str | None = None) -> list[ReplicaView]:
        """As `Client.replicas`."""
        return self._loop.run(self._client.replicas(bundle=bundle))

    def replica(self, replica_id: str) -> ReplicaView:
        """As `Client.replica`."""
        return self._loop.run(self._client.replica(replica_id))
