"""Node services of a configuration, as the core takes them."""

from __future__ import annotations

from hostler.base.units import duration_ms
from hostler.core.services import NodeService
from hostler.engine.translate.bundles import job_config, launch, requirement
from hostler.model.bundle import Job
from hostler.model.pool import Band
from hostler.model.service import ServiceLife, ServiceSpec
from hostler.model.shape import Capability
from hostler.wire.documents import capability_of
from hostler.wire.documents.services import ServiceDocument


def node_service(name: str, document: ServiceDocument) -> NodeService:
    """Read a node service. It is gold: what it provides is worth as much as what needs it."""
    job = Job(
        name="main",
        launch=launch(document.run),
        band=Band.GOLD,
        requirement=requirement(document.consumes),
        config=job_config(document.config),
    )
    spec = ServiceSpec(
        life=ServiceLife(document.life),
        pools=tuple(document.pools),
        tiers=tuple(document.tiers),
        provides=tuple(
            Capability(name=each, count=one.count, attributes=dict(one.attributes))
            for each, value in sorted(document.provides.items())
            for one in [capability_of(value)]
        ),
        patience_ms=duration_ms(document.patience),
        linger_ms=duration_ms(document.linger),
    )
    return NodeService(name=name, job=job, spec=spec)
