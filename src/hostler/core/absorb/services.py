"""Node services are configured: each is a bundle, which people see and do not submit."""

from __future__ import annotations

from msgspec.structs import replace

from hostler.core.inputs import ApplyConfiguration
from hostler.core.job_config import numbered
from hostler.core.services import NodeService
from hostler.core.txn import Txn
from hostler.model import Bundle
from hostler.model.bundle import BundlePhase, BundleTrigger
from hostler.model.service import service_bundle_id


def keep_services(txn: Txn, one: ApplyConfiguration) -> bool:
    """Write down each service that is new or has changed, and take away what is not there any more.

    One that is still on its way out when its name comes again stays so; whoever applies the
    configuration once more has it back. Such a service is refused beforehand.
    """
    is_changed = False
    wanted = {service_bundle_id(each.name): each for each in one.services}
    for key in txn.fleet.index.bundles_of_services.keys("all"):
        bundle = txn.fleet.bundles[key]
        if key not in wanted and bundle.phase is BundlePhase.ACTIVE:
            txn.move(bundle, BundleTrigger.DELETION_REQUESTED)
            is_changed = True
    for bundle_id, service in sorted(wanted.items()):
        known = txn.fleet.bundles.get(bundle_id)
        desired = _desired(txn, service, known, one.principal)
        if desired != known:
            txn.put(desired)
            is_changed = True
    return is_changed


def _desired(txn: Txn, service: NodeService, known: Bundle | None, principal: str) -> Bundle:
    if known is None:
        return Bundle(
            bundle_id=service_bundle_id(service.name),
            pool=service.spec.pools[0],
            fallback_pools=service.spec.pools[1:],
            jobs=numbered((service.job,), None, 1),
            replica_count=0,
            service=service.spec,
            phase=BundlePhase.ACTIVE,
            phase_since_at_ms=txn.now_ms,
            submitted_by=principal,
        )
    generation = known.generation + 1
    desired = replace(
        known,
        pool=service.spec.pools[0],
        fallback_pools=service.spec.pools[1:],
        jobs=numbered((service.job,), known, generation),
        service=service.spec,
    )
    if desired == known:
        return known
    return replace(desired, generation=generation, submitted_by=principal)
