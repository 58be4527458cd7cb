"""Every request of the API as a value: what to send, and what comes back.

The clients only send these. Each is safe to send again: reads change nothing, releases and
heartbeats repeat without harm, and every other change carries an idempotency key.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from hostler.wire.documents import BundleDocument
from hostler.wire.http import (
    AcquireRequest,
    AllocationView,
    BudgetLineView,
    BundleView,
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
    NodeView,
    Page,
    PendingView,
    PlanView,
    PoolView,
    ReleaseRequest,
    ReloadRequest,
    ReloadView,
    ReplicaView,
    RevokeRequest,
    RolloutView,
    ServicesView,
    ServiceView,
    SpendView,
    StatusView,
    TokenView,
    UpcomingPage,
    WindowsView,
)

T = TypeVar("T")

Params = dict[str, str | int | bool | None]


class Call(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One request."""

    method: str
    path: str
    answer: type[T]
    params: dict[str, str] = {}
    body: bytes | None = None
    idempotency_key: str = ""
    wait_ms: int = 0
    """How long the server may keep it open on purpose."""

    def decode(self, body: bytes) -> T:
        """Read the answer."""
        return msgspec.json.decode(body, type=self.answer)


def segment(text: str) -> str:
    """Quote one part of a path."""
    return quote(text, safe="")


def _params(given: Params) -> dict[str, str]:
    told: dict[str, str] = {}
    for name, value in given.items():
        if isinstance(value, bool):
            told[name] = "true" if value else "false"
        elif value is not None:
            told[name] = str(value)
    return told


def _get(path: str, answer: type[T], *, wait_ms: int = 0, **params: Any) -> Call[T]:
    if wait_ms:
        params["wait_ms"] = wait_ms
    return Call(method="GET", path=path, answer=answer, params=_params(params), wait_ms=wait_ms)


def _post(
    path: str, answer: type[T], body: object = None, *, key: str | None = None, wait_ms: int = 0
) -> Call[T]:
    """Make a change; `key` is its idempotency key, `None` makes one up, empty sends none."""
    return Call(
        method="POST",
        path=path,
        answer=answer,
        body=None if body is None else msgspec.json.encode(body),
        idempotency_key=secrets.token_urlsafe(18) if key is None else key,
        wait_ms=wait_ms,
    )


# -- the fleet ----------------------------------------------------------------------------------


def status() -> Call[StatusView]:
    """Ask for the server and the fleet in numbers."""
    return _get("/v1/status", StatusView)


def config() -> Call[ConfigView]:
    """Ask for the configuration in force."""
    return _get("/v1/config", ConfigView)


def reload_config(*, is_dry_run: bool = False, digest: str = "") -> Call[ReloadView]:
    """Have the server read its configuration file again."""
    body = ReloadRequest(is_dry_run=is_dry_run, digest=digest)
    return _post("/v1/config/reload", ReloadView, body, key="")


def explain(
    about: str,
    node: str | None = None,
    *,
    at_event: int | None = None,
    at_revision: int | None = None,
    given: Sequence[str] = (),
) -> Call[ExplainView]:
    """Ask why something is as it is; of a replica, also about a node, then, or with other facts."""
    params: Params = {
        "about": about,
        "node": node,
        "at_event": at_event,
        "at_revision": at_revision,
        "if": ",".join(given) or None,
    }
    return Call(method="GET", path="/v1/explain", answer=ExplainView, params=_params(params))


def pending() -> Call[PendingView]:
    """Ask what waits, and for what."""
    return _get("/v1/pending", PendingView)


def spend(**params: Any) -> Call[Page[SpendView]]:
    """Ask what was used."""
    return _get("/v1/spend", Page[SpendView], **params)


def budgets(**params: Any) -> Call[Page[BudgetLineView]]:
    """Ask what budgets have left."""
    return _get("/v1/budgets", Page[BudgetLineView], **params)


# -- bundles ------------------------------------------------------------------------------------


def submit_bundle(
    document: BundleDocument, *, at: int | None = None, key: str | None = None
) -> Call[BundleView]:
    """Create a bundle, or change what is desired of one; `at`: as planned at that revision."""
    path = "/v1/bundles" if at is None else f"/v1/bundles?at={at}"
    return _post(path, BundleView, document, key=key)


def plan_bundle(document: BundleDocument) -> Call[PlanView]:
    """Ask what would follow from submitting a bundle; changes nothing."""
    return _post("/v1/plan", PlanView, document, key="")


def bundles(**params: Any) -> Call[Page[BundleView]]:
    """List bundles."""
    return _get("/v1/bundles", Page[BundleView], **params)


def bundle(bundle_id: str) -> Call[BundleView]:
    """Get one bundle."""
    return _get(f"/v1/bundles/{segment(bundle_id)}", BundleView)


def delete_bundle(bundle_id: str) -> Call[BundleView]:
    """Stop everything of a bundle, then forget it."""
    return Call(method="DELETE", path=f"/v1/bundles/{segment(bundle_id)}", answer=BundleView)


def start_job(bundle_id: str, job: str) -> Call[BundleView]:
    """Start the replicas of a job that are dormant, dropped or broken."""
    return _post(f"/v1/bundles/{segment(bundle_id)}/jobs/{segment(job)}/start", BundleView)


def stop_job(bundle_id: str, job: str) -> Call[BundleView]:
    """Stop the replicas of a job until somebody starts it."""
    return _post(f"/v1/bundles/{segment(bundle_id)}/jobs/{segment(job)}/stop", BundleView)


def reset_bundle(bundle_id: str) -> Call[BundleView]:
    """Forget the failures of a bundle's replicas, and try again what was given up."""
    return _post(f"/v1/bundles/{segment(bundle_id)}/reset", BundleView)


def reset_replica(replica_id: str) -> Call[ReplicaView]:
    """The same of one replica."""
    return _post(f"/v1/replicas/{quote(replica_id)}/reset", ReplicaView)


def rollout(bundle_id: str) -> Call[RolloutView]:
    """Get the latest rollout of a bundle."""
    return _get(f"/v1/bundles/{segment(bundle_id)}/rollout", RolloutView)


def steer_rollout(bundle_id: str, steering: str) -> Call[RolloutView]:
    """Pause a rollout, let it go on (`resume`), or turn it back (`undo`)."""
    return _post(f"/v1/bundles/{segment(bundle_id)}/rollout/{segment(steering)}", RolloutView)


def upcoming(**params: Any) -> Call[UpcomingPage]:
    """List the next starts and stops of all timetables."""
    return _get("/v1/upcoming", UpcomingPage, **params)


def replicas(**params: Any) -> Call[Page[ReplicaView]]:
    """List replicas."""
    return _get("/v1/replicas", Page[ReplicaView], **params)


def replica(replica_id: str) -> Call[ReplicaView]:
    """Get one replica by its id, `bundle/job/0`."""
    return _get(f"/v1/replicas/{quote(replica_id)}", ReplicaView)


def allocations(**params: Any) -> Call[Page[AllocationView]]:
    """List allocations."""
    return _get("/v1/allocations", Page[AllocationView], **params)


def allocation(allocation_id: str) -> Call[AllocationView]:
    """Get one allocation."""
    return _get(f"/v1/allocations/{segment(allocation_id)}", AllocationView)


# -- nodes and pools ----------------------------------------------------------------------------


def nodes(**params: Any) -> Call[Page[NodeView]]:
    """List nodes."""
    return _get("/v1/nodes", Page[NodeView], **params)


def node(node_id: str) -> Call[NodeView]:
    """Get one node."""
    return _get(f"/v1/nodes/{segment(node_id)}", NodeView)


def maintenance() -> Call[MaintenancePage]:
    """List when the machines of which nodes are worked on."""
    return _get("/v1/maintenance", MaintenancePage)


def windows(**params: Any) -> Call[WindowsView]:
    """List what the windows of pools bring."""
    return _get("/v1/windows", WindowsView, **params)


def retry_pool(name: str) -> Call[PoolView]:
    """Launch again in a pool what lately failed."""
    return _post(f"/v1/pools/{segment(name)}/retry", PoolView)


def cordon_node(node_id: str, reason: str = "") -> Call[NodeView]:
    """Let nothing new onto a node."""
    return _post(f"/v1/nodes/{segment(node_id)}/cordon", NodeView, CordonRequest(reason=reason))


def end_orphan(node_id: str) -> Call[NodeView]:
    """End a machine that was held back because nobody knows whose it is."""
    return _post(f"/v1/nodes/{segment(node_id)}/end", NodeView)


def label_node(node_id: str, labels: dict[str, str]) -> Call[NodeView]:
    """Give a node labels; an empty value takes one away."""
    body = LabelsRequest(labels=labels)
    return _post(f"/v1/nodes/{segment(node_id)}/labels", NodeView, body)


def uncordon_node(node_id: str) -> Call[NodeView]:
    """Let new work onto a node again."""
    return _post(f"/v1/nodes/{segment(node_id)}/uncordon", NodeView)


def drain_node(
    node_id: str, deadline_ms: int, *, is_forced: bool = False, then_retire: bool = False
) -> Call[NodeView]:
    """Cordon a node and move what is there."""
    body = DrainRequest(deadline_ms=deadline_ms, is_forced=is_forced, then_retire=then_retire)
    return _post(f"/v1/nodes/{segment(node_id)}/drain", NodeView, body)


def confirm_lost(node_id: str) -> Call[NodeView]:
    """Say that a silent node is really gone."""
    return _post(f"/v1/nodes/{segment(node_id)}/confirm-lost", NodeView)


def pools(**params: Any) -> Call[Page[PoolView]]:
    """List pools."""
    return _get("/v1/pools", Page[PoolView], **params)


def services() -> Call[ServicesView]:
    """List node services."""
    return _get("/v1/services", ServicesView)


def service(name: str) -> Call[ServiceView]:
    """Get one node service, with its nodes."""
    return _get(f"/v1/services/{segment(name)}", ServiceView)


def pool(name: str) -> Call[PoolView]:
    """Get one pool."""
    return _get(f"/v1/pools/{segment(name)}", PoolView)


# -- leases -------------------------------------------------------------------------------------


def acquire_lease(asked: AcquireRequest, *, key: str | None = None) -> Call[LeaseView]:
    """Ask for a slot."""
    return _post("/v1/leases", LeaseView, asked, key=key, wait_ms=asked.wait_ms)


def plan_lease(asked: AcquireRequest) -> Call[LeasePlanView]:
    """Ask what would become of a request for a slot; changes nothing."""
    return _post("/v1/leases/plan", LeasePlanView, asked, key="")


def leases(**params: Any) -> Call[Page[LeaseView]]:
    """List leases, those in line too."""
    return _get("/v1/leases", Page[LeaseView], **params)


def lease(lease_id: str, wait_ms: int = 0) -> Call[LeaseView]:
    """Get one lease; with `wait_ms`, as soon as it waits no longer."""
    return _get(f"/v1/leases/{segment(lease_id)}", LeaseView, wait_ms=wait_ms)


def heartbeat_lease(lease_id: str, epoch: int) -> Call[LeaseView]:
    """Renew a held lease."""
    body = HeartbeatRequest(epoch=epoch)
    return _post(f"/v1/leases/{segment(lease_id)}/heartbeat", LeaseView, body, key="")


def extend_lease(lease_id: str, epoch: int, by_ms: int) -> Call[LeaseView]:
    """Stay longer on a node that is to go."""
    body = ExtendRequest(epoch=epoch, by_ms=by_ms)
    return _post(f"/v1/leases/{segment(lease_id)}/extend", LeaseView, body)


def release_lease(
    lease_id: str, *, epoch: int | None = None, is_healthy: bool = True, detail: str = ""
) -> Call[LeaseView]:
    """Give a lease back, or leave the line."""
    body = ReleaseRequest(epoch=epoch, outcome="healthy" if is_healthy else "poison", detail=detail)
    return _post(f"/v1/leases/{segment(lease_id)}/release", LeaseView, body, key="")


def revoke_lease(lease_id: str, detail: str = "") -> Call[LeaseView]:
    """Take a lease away from its holder."""
    body = RevokeRequest(detail=detail)
    return _post(f"/v1/leases/{segment(lease_id)}/revoke", LeaseView, body, key="")


# -- tokens -------------------------------------------------------------------------------------


def create_token(asked: CreateTokenRequest, *, key: str | None = None) -> Call[CreatedToken]:
    """Make a token; the answer holds its secret."""
    return _post("/v1/tokens", CreatedToken, asked, key=key)


def tokens(**params: Any) -> Call[Page[TokenView]]:
    """List tokens."""
    return _get("/v1/tokens", Page[TokenView], **params)


def revoke_token(token_id: str) -> Call[TokenView]:
    """Make a token worthless."""
    return Call(method="DELETE", path=f"/v1/tokens/{segment(token_id)}", answer=TokenView)
