"""Every other request: about the fleet, nodes, leases, tokens and the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hostler.client.call import Call, getting, posting, segment
from hostler.wire.documents import MaintenanceDocument
from hostler.wire.http import (
    AcquireRequest,
    BudgetLineView,
    ConfigView,
    CordonRequest,
    CreatedToken,
    CreateTokenRequest,
    DrainRequest,
    ExplainView,
    ExtendRequest,
    HeartbeatRequest,
    LabelsRequest,
    LeasePlanView,
    LeaseView,
    MaintenancePage,
    MaintenanceView,
    NodeView,
    Page,
    PendingView,
    PoolView,
    ReleaseRequest,
    ReloadRequest,
    ReloadView,
    RevokeRequest,
    ServicesView,
    ServiceView,
    SpendView,
    StatusView,
    TokenView,
    WindowsView,
)

# -- the fleet ----------------------------------------------------------------------------------


def status() -> Call[StatusView]:
    """Ask for the server and the fleet in numbers."""
    return getting("/v1/status", StatusView)


def config() -> Call[ConfigView]:
    """Ask for the configuration in force."""
    return getting("/v1/config", ConfigView)


def reload_config(*, is_dry_run: bool = False, digest: str = "") -> Call[ReloadView]:
    """Have the server read its configuration file again."""
    body = ReloadRequest(is_dry_run=is_dry_run, digest=digest)
    return posting("/v1/config/reload", ReloadView, body, key="")


def explain(
    about: str,
    node: str | None = None,
    *,
    at_event: int | None = None,
    at_revision: int | None = None,
    given: Sequence[str] = (),
) -> Call[ExplainView]:
    """Ask why something is as it is; of a replica, also about a node, then, or with other facts."""
    return getting(
        "/v1/explain",
        ExplainView,
        about=about,
        node=node,
        at_event=at_event,
        at_revision=at_revision,
        **{"if": ",".join(given) or None},  # type: ignore[arg-type]  # a word of Python's
    )


def pending() -> Call[PendingView]:
    """Ask what waits, and for what."""
    return getting("/v1/pending", PendingView)


def spend(**params: Any) -> Call[Page[SpendView]]:
    """Ask what was used."""
    return getting("/v1/spend", Page[SpendView], **params)


def budgets(**params: Any) -> Call[Page[BudgetLineView]]:
    """Ask what budgets have left."""
    return getting("/v1/budgets", Page[BudgetLineView], **params)


# -- nodes and pools ----------------------------------------------------------------------------


def nodes(**params: Any) -> Call[Page[NodeView]]:
    """List nodes."""
    return getting("/v1/nodes", Page[NodeView], **params)


def node(node_id: str) -> Call[NodeView]:
    """Get one node."""
    return getting(f"/v1/nodes/{segment(node_id)}", NodeView)


def maintenance() -> Call[MaintenancePage]:
    """List when the machines of which nodes are worked on."""
    return getting("/v1/maintenance", MaintenancePage)


def add_maintenance(document: MaintenanceDocument, key: str | None = None) -> Call[MaintenanceView]:
    """Plan a maintenance besides those of the configuration."""
    return posting("/v1/maintenance", MaintenanceView, document, key=key)


def remove_maintenance(name: str) -> Call[MaintenanceView]:
    """Call off a maintenance that was added."""
    return Call(method="DELETE", path=f"/v1/maintenance/{segment(name)}", answer=MaintenanceView)


def windows(**params: Any) -> Call[WindowsView]:
    """List what the windows of pools bring."""
    return getting("/v1/windows", WindowsView, **params)


def retry_pool(name: str) -> Call[PoolView]:
    """Launch again in a pool what lately failed."""
    return posting(f"/v1/pools/{segment(name)}/retry", PoolView)


def cordon_node(node_id: str, reason: str = "") -> Call[NodeView]:
    """Let nothing new onto a node."""
    return posting(f"/v1/nodes/{segment(node_id)}/cordon", NodeView, CordonRequest(reason=reason))


def end_orphan(node_id: str) -> Call[NodeView]:
    """End a machine that was held back because nobody knows whose it is."""
    return posting(f"/v1/nodes/{segment(node_id)}/end", NodeView)


def label_node(node_id: str, labels: dict[str, str]) -> Call[NodeView]:
    """Give a node labels; an empty value takes one away."""
    body = LabelsRequest(labels=labels)
    return posting(f"/v1/nodes/{segment(node_id)}/labels", NodeView, body)


def uncordon_node(node_id: str) -> Call[NodeView]:
    """Let new work onto a node again."""
    return posting(f"/v1/nodes/{segment(node_id)}/uncordon", NodeView)


def drain_node(
    node_id: str, deadline_ms: int, *, is_forced: bool = False, then_retire: bool = False
) -> Call[NodeView]:
    """Cordon a node and move what is there."""
    body = DrainRequest(deadline_ms=deadline_ms, is_forced=is_forced, then_retire=then_retire)
    return posting(f"/v1/nodes/{segment(node_id)}/drain", NodeView, body)


def confirm_lost(node_id: str) -> Call[NodeView]:
    """Say that a silent node is really gone."""
    return posting(f"/v1/nodes/{segment(node_id)}/confirm-lost", NodeView)


def pools(**params: Any) -> Call[Page[PoolView]]:
    """List pools."""
    return getting("/v1/pools", Page[PoolView], **params)


def services() -> Call[ServicesView]:
    """List node services."""
    return getting("/v1/services", ServicesView)


def service(name: str) -> Call[ServiceView]:
    """Get one node service, with its nodes."""
    return getting(f"/v1/services/{segment(name)}", ServiceView)


def pool(name: str) -> Call[PoolView]:
    """Get one pool."""
    return getting(f"/v1/pools/{segment(name)}", PoolView)


# -- leases -------------------------------------------------------------------------------------


def acquire_lease(asked: AcquireRequest, *, key: str | None = None) -> Call[LeaseView]:
    """Ask for a slot."""
    return posting("/v1/leases", LeaseView, asked, key=key, wait_ms=asked.wait_ms)


def plan_lease(asked: AcquireRequest) -> Call[LeasePlanView]:
    """Ask what would become of a request for a slot; changes nothing."""
    return posting("/v1/leases/plan", LeasePlanView, asked, key="")


def leases(**params: Any) -> Call[Page[LeaseView]]:
    """List leases, those in line too."""
    return getting("/v1/leases", Page[LeaseView], **params)


def lease(lease_id: str, wait_ms: int = 0) -> Call[LeaseView]:
    """Get one lease; with `wait_ms`, as soon as it waits no longer."""
    return getting(f"/v1/leases/{segment(lease_id)}", LeaseView, wait_ms=wait_ms)


def heartbeat_lease(lease_id: str, epoch: int) -> Call[LeaseView]:
    """Renew a held lease."""
    body = HeartbeatRequest(epoch=epoch)
    return posting(f"/v1/leases/{segment(lease_id)}/heartbeat", LeaseView, body, key="")


def extend_lease(lease_id: str, epoch: int, by_ms: int) -> Call[LeaseView]:
    """Stay longer on a node that is to go."""
    body = ExtendRequest(epoch=epoch, by_ms=by_ms)
    return posting(f"/v1/leases/{segment(lease_id)}/extend", LeaseView, body)


def release_lease(
    lease_id: str, *, epoch: int | None = None, is_healthy: bool = True, detail: str = ""
) -> Call[LeaseView]:
    """Give a lease back, or leave the line."""
    body = ReleaseRequest(epoch=epoch, outcome="healthy" if is_healthy else "poison", detail=detail)
    return posting(f"/v1/leases/{segment(lease_id)}/release", LeaseView, body, key="")


def revoke_lease(lease_id: str, detail: str = "") -> Call[LeaseView]:
    """Take a lease away from its holder."""
    body = RevokeRequest(detail=detail)
    return posting(f"/v1/leases/{segment(lease_id)}/revoke", LeaseView, body, key="")


# -- tokens -------------------------------------------------------------------------------------


def create_token(asked: CreateTokenRequest, *, key: str | None = None) -> Call[CreatedToken]:
    """Make a token; the answer holds its secret."""
    return posting("/v1/tokens", CreatedToken, asked, key=key)


def tokens(**params: Any) -> Call[Page[TokenView]]:
    """List tokens."""
    return getting("/v1/tokens", Page[TokenView], **params)


def revoke_token(token_id: str) -> Call[TokenView]:
    """Make a token worthless."""
    return Call(method="DELETE", path=f"/v1/tokens/{segment(token_id)}", answer=TokenView)
