"""What can be wrong with the node services of a configuration."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.base.ids import BundleId
from hostler.core.fleet import Fleet
from hostler.core.inputs import ApplyConfiguration
from hostler.core.replies import Problem
from hostler.core.services import NodeService, in_order, provided_names
from hostler.model import Bundle
from hostler.model.bundle import BundlePhase
from hostler.model.service import service_bundle_id


def problems_of_services(fleet: Fleet, one: ApplyConfiguration) -> Iterator[Problem]:
    """Yield every problem, with its path."""
    pools = {pool.name: pool for pool in one.pools}
    for number, service in enumerate(one.services):
        at = f"services[{number}]"
        if not service.spec.pools:
            yield Problem(path=f"{at}.pools", code="too_short", message="name at least one pool")
        for index, name in enumerate(service.spec.pools):
            if name not in pools:
                yield Problem(
                    path=f"{at}.pools[{index}]",
                    code="unknown_pool",
                    message=f"there is no pool {name} in the configuration",
                )
        for index, tier in enumerate(service.spec.tiers):
            pool, _, name = tier.partition("/")
            if pool not in pools or pools[pool].tier(name) is None:
                yield Problem(
                    path=f"{at}.tiers[{index}]",
                    code="unknown_tier",
                    message=f"there is no tier {tier}; write it as POOL/TIER",
                )
        known = fleet.bundles.get(service_bundle_id(service.name))
        if known is not None and known.phase is not BundlePhase.ACTIVE:
            yield Problem(
                path=at,
                code="service_ending",
                message=f"{service.name} is being taken away; apply it again when it is gone",
            )
    yield from _shared(one.services)
    yield from _circles(one.services)


def _shared(services: tuple[NodeService, ...]) -> Iterator[Problem]:
    for number, service in enumerate(services):
        for other in services[:number]:
            names = {each.name for each in service.spec.provides}
            both = names.intersection(each.name for each in other.spec.provides)
            if both and not {*service.spec.pools}.isdisjoint(other.spec.pools):
                yield Problem(
                    path=f"services[{number}].provides",
                    code="provided_twice",
                    message=f"{other.name} provides {', '.join(sorted(both))} in the same pool",
                )


def _circles(services: tuple[NodeService, ...]) -> Iterator[Problem]:
    """A service that needs itself, by whatever way, could never start."""
    bundles = [
        Bundle(
            bundle_id=BundleId(service.name),
            pool="",
            jobs=(service.job,),
            service=service.spec,
            phase_since_at_ms=0,
        )
        for service in services
    ]
    startable = {each.bundle_id for each in in_order(bundles)}
    stuck = [each for each in bundles if each.bundle_id not in startable]
    # What only waits for a circle is not part of one: peel off those that nobody stuck needs.
    while True:
        wanted = {c.name for each in stuck for c in each.jobs[0].requirement.capabilities}
        needed = [each for each in stuck if provided_names(each) & wanted]
        if len(needed) == len(stuck):
            break
        stuck = needed
    for number, service in enumerate(services):
        if service.name in {each.bundle_id for each in stuck}:
            names = ", ".join(sorted(each.bundle_id for each in stuck))
            yield Problem(
                path=f"services[{number}].consumes",
                code="circle",
                message=f"it needs what comes only after it: {names} need each other in a circle",
            )
