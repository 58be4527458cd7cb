"""The part of the client that is about bundles and their replicas."""

from __future__ import annotations

from hostler.client import bundle_calls
from hostler.client.paging import PAGE_COUNT, Paging
from hostler.wire.documents import BundleDocument, JobConfigDocument
from hostler.wire.http import BundleView, PlanView, ReplicaView, RolloutView, UpcomingView


class BundleClient(Paging):
    """What can be asked of bundles; `Client` adds the rest."""

    async def submit_bundle(
        self, document: BundleDocument, *, at: int | None = None, if_generation: int | None = None
    ) -> BundleView:
        """Create a bundle, or change what is desired of one.

        Args:
            document: The bundle.
            at: The revision of a plan: what comes of it must be what was planned, or it is refused.
            if_generation: Refused unless the bundle is at this generation still; 0: unless there
                is none.
        """
        call = bundle_calls.submit_bundle(document, at=at, if_generation=if_generation)
        return await self._transport.send(call)

    async def plan_bundle(self, document: BundleDocument) -> PlanView:
        """Return what would follow from submitting a bundle; changes nothing."""
        return await self._transport.send(bundle_calls.plan_bundle(document))

    async def bundles(self, *, protection: bool = False) -> list[BundleView]:
        """Return all bundles; if asked, with the losses that each would not survive."""
        given = {"protection": "true"} if protection else {}
        return await self._all(
            lambda cursor: bundle_calls.bundles(limit=PAGE_COUNT, cursor=cursor, **given)
        )

    async def bundle(self, bundle_id: str) -> BundleView:
        """Return one bundle."""
        return await self._transport.send(bundle_calls.bundle(bundle_id))

    async def delete_bundle(self, bundle_id: str) -> BundleView:
        """Stop everything of a bundle, then have it forgotten."""
        return await self._transport.send(bundle_calls.delete_bundle(bundle_id))

    async def start_job(self, bundle_id: str, job: str) -> BundleView:
        """Start the replicas of a job that are dormant, dropped or broken."""
        return await self._transport.send(bundle_calls.start_job(bundle_id, job))

    async def stop_job(self, bundle_id: str, job: str) -> BundleView:
        """Stop the replicas of a job until somebody starts it."""
        return await self._transport.send(bundle_calls.stop_job(bundle_id, job))

    async def configure_job(
        self,
        bundle_id: str,
        job: str,
        document: JobConfigDocument,
        *,
        if_generation: int | None = None,
    ) -> BundleView:
        """Let a job work by another configuration, running copies in place and later ones at once.

        Args:
            bundle_id: Its bundle, of which nothing else changes.
            job: Its name.
            document: All of it; an empty one takes the configuration away.
            if_generation: Refused unless the bundle is at this generation still.
        """
        call = bundle_calls.configure_job(bundle_id, job, document, if_generation=if_generation)
        return await self._transport.send(call)

    async def reset_bundle(self, bundle_id: str) -> BundleView:
        """Forget the failures of a bundle's replicas, and try again what was given up."""
        return await self._transport.send(bundle_calls.reset_bundle(bundle_id))

    async def reset_replica(self, replica_id: str) -> ReplicaView:
        """Forget the failures of one replica, and try again if it was given up."""
        return await self._transport.send(bundle_calls.reset_replica(replica_id))

    async def rollout(self, bundle_id: str) -> RolloutView:
        """Return the latest rollout of a bundle."""
        return await self._transport.send(bundle_calls.rollout(bundle_id))

    async def steer_rollout(self, bundle_id: str, steering: str) -> RolloutView:
        """Pause a rollout, let it go on (`resume`), or turn it back (`undo`)."""
        return await self._transport.send(bundle_calls.steer_rollout(bundle_id, steering))

    async def upcoming(self, *, days: int = 14, bundle: str | None = None) -> list[UpcomingView]:
        """Return the next starts and stops of all timetables, or of one bundle's."""
        call = bundle_calls.upcoming(days=days, bundle=bundle)
        return (await self._transport.send(call)).items

    async def replicas(self, *, bundle: str | None = None) -> list[ReplicaView]:
        """Return all replicas, or those of one bundle."""
        return await self._all(
            lambda cursor: bundle_calls.replicas(limit=PAGE_COUNT, cursor=cursor, bundle=bundle)
        )

    async def replica(self, replica_id: str) -> ReplicaView:
        """Return one replica by its id, `bundle/job/0`."""
        return await self._transport.send(bundle_calls.replica(replica_id))
