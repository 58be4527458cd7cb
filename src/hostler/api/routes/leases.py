"""Leases: into line, held, renewed, given back. The busiest routes: they read single records."""

from __future__ import annotations

from collections.abc import Iterable

from litestar import Response, get, post
from msgspec.structs import replace

from hostler.api.context import Api, Caller, api_of, caller_of, or_stopping
from hostler.api.convert import leases as views
from hostler.api.convert.shapes import required
from hostler.api.errors import Denied, HttpRequest, missing
from hostler.api.gateway import common, of_holder, record_of, submit
from hostler.api.http import (
    PAGING,
    Operation,
    Parameter,
    Query,
    answer,
    body_of,
    described,
    page,
    path_text,
)
from hostler.base.ids import LeaseId, NodeId
from hostler.core.fleet import Fleet
from hostler.core.inputs import AcquireLease, ExtendLease, HeartbeatLease, ReleaseLease
from hostler.core.lease_planning import plan_lease
from hostler.model import Lease
from hostler.model.lease import LeaseOutcome, LeasePhase, Share
from hostler.model.record import Record
from hostler.model.selector import read_selector
from hostler.model.token import Role
from hostler.wire.http import (
    WAIT_MS_MAX,
    AcquireRequest,
    ExtendRequest,
    HeartbeatRequest,
    LeasePlanView,
    LeaseView,
    Page,
    ReleaseRequest,
    RevokeRequest,
)

_ENDED = (LeasePhase.SETTLED, LeasePhase.REFUSED)


def _waits_not(record: Record | None) -> bool:
    return not isinstance(record, Lease) or record.phase is not LeasePhase.WAITING


async def _settled(api: Api, lease_id: str, wait_ms: int) -> Lease:
    """Return a lease, waiting for a while for it to leave the line."""
    found = api.engine.peek(Lease.KIND, lease_id)
    if wait_ms and not _waits_not(found):
        watching = api.engine.watch(Lease.KIND, lease_id, _waits_not, wait_ms)
        found = await or_stopping(api, watching) or found
    if not isinstance(found, Lease):
        raise missing(Lease.KIND, lease_id)
    return found


def _check_pool(caller: Caller, pool: str) -> None:
    if caller.pool and caller.pool != pool:
        raise Denied(
            403, "forbidden", f"this token may lease from pool {caller.pool} only", pool=pool
        )


@post(
    "/v1/leases",
    **described(
        Operation(
            summary="Ask for a slot of a pool",
            body=AcquireRequest,
            answer=LeaseView,
            status=201,
            role=Role.LESSEE,
            is_busy=True,
            statuses=(404, 409, 429),
        )
    ),
)
async def acquire(request: HttpRequest) -> Response[bytes]:
    """The lease may be held, still waiting, or refused: its `phase` says which.

    With `wait_ms` the answer comes when it no longer waits. Sent again with the same
    `Idempotency-Key`, it is the same lease.
    """
    api, caller = api_of(request), caller_of(request)
    asked = await body_of(request, AcquireRequest)
    _check_pool(caller, asked.pool)
    accepted = await submit(api, _acquire(request, caller, asked))
    return answer(_shown(api, await _settled(api, accepted.subject_id, asked.wait_ms)))


@post(
    "/v1/leases/plan",
    **described(
        Operation(
            summary="Say what would become of a request for a slot; changes nothing",
            body=AcquireRequest,
            answer=LeasePlanView,
            role=Role.LESSEE,
        )
    ),
)
async def plan(request: HttpRequest) -> Response[bytes]:
    """A real step on the present fleet that is then dropped, so it cannot differ from asking."""
    api, caller = api_of(request), caller_of(request)
    asked = await body_of(request, AcquireRequest)
    _check_pool(caller, asked.pool)
    wanted = replace(_acquire(request, caller, asked), idempotency_key="")
    now_ms = api.engine.clock.now_ms()
    return answer(
        views.plan(await api.engine.read(lambda fleet: plan_lease(fleet, wanted, now_ms)))
    )


def _acquire(request: HttpRequest, caller: Caller, asked: AcquireRequest) -> AcquireLease:
    node_id, lease_id = asked.affinity_node_id, asked.affinity_lease_id
    return AcquireLease(
        pool=asked.pool,
        fairness_key=asked.key,
        requirement=replace(required(asked.requires), node_labels=read_selector(asked.selector))
        if asked.selector
        else required(asked.requires),
        labels=asked.labels,
        priority=asked.priority,
        affinity_node_id=None if node_id is None else NodeId(node_id),
        affinity_lease_id=None if lease_id is None else LeaseId(lease_id),
        affinity_wait_ms=asked.affinity_wait_ms,
        is_affinity_required=asked.is_affinity_required,
        excluded_node_ids=tuple(NodeId(each) for each in asked.excluded_node_ids),
        share=Share(asked.share),
        ack_ms=asked.ack_ms,
        timeout_ms=asked.timeout_ms,
        lease_ms=asked.lease_ms,
        is_operator=caller.may(Role.OPERATOR),
        **of_holder(request, caller),
    )


@get(
    "/v1/leases",
    **described(
        Operation(
            summary="List leases, those in line too",
            answer=Page[LeaseView],
            role=Role.VIEWER,
            parameters=(
                *PAGING,
                Parameter("pool", "string", "Only those of this pool."),
                Parameter("phase", "string", "Only those in this phase."),
                Parameter("include_ended", "boolean", "Also those that are settled or refused."),
            ),
        )
    ),
)
async def list_all(request: HttpRequest) -> Response[bytes]:
    """Leases that are held or wait, and the ended that are remembered if asked for."""
    query = Query(request)
    pool, phase = query.text("pool"), query.text("phase")
    include_ended = query.flag("include_ended") or phase in _ENDED
    now_ms = api_of(request).engine.clock.now_ms()
    places: dict[str, dict[str, int]] = {}  # by pool: sorted once, however many wait

    def view(fleet: Fleet, key: str) -> LeaseView | None:
        found = fleet.leases[key]
        is_wanted = (
            (include_ended or found.phase not in _ENDED)
            and (not pool or found.pool == pool)
            and (not phase or found.phase == phase)
        )
        if not is_wanted:
            return None
        if found.phase is not LeasePhase.WAITING:
            return views.lease(found, now_ms)
        if found.pool not in places:
            line = fleet.index.leases_waiting.keys(found.pool)
            places[found.pool] = {each: number for number, each in enumerate(line)}
        return views.waiting_lease(fleet, found, now_ms, places[found.pool].get(key))

    def keys(fleet: Fleet) -> Iterable[str]:
        if include_ended:
            return fleet.leases.rows
        # A busy fleet remembers far more ended leases than there are others: only those are read.
        index, names = fleet.index, [pool] if pool else sorted(fleet.pools.rows)
        return [
            key
            for name in names
            for key in (*index.leases_held.keys(name), *index.leases_waiting.keys(name))
        ]

    return await page(request, query, keys, view)


@get(
    "/v1/leases/{lease_id:str}",
    **described(
        Operation(
            summary="Get a lease; with wait_ms, as soon as it waits no longer",
            answer=LeaseView,
            role=Role.VIEWER,
            parameters=(Parameter("wait_ms", "integer", f"Longest wait, {WAIT_MS_MAX} at most."),),
            statuses=(404,),
        )
    ),
)
async def get_one(request: HttpRequest) -> Response[bytes]:
    """One lease, with its place in line while it waits."""
    lease_id = path_text(request, "lease_id")
    api = api_of(request)
    wait_ms = Query(request).number("wait_ms", most=WAIT_MS_MAX) or 0
    found = await _settled(api, lease_id, wait_ms)
    if found.phase is not LeasePhase.WAITING:
        return answer(_shown(api, found))

    def read(fleet: Fleet) -> LeaseView:
        now, now_ms = fleet.leases.get(lease_id) or found, api.engine.clock.now_ms()
        if now.phase is not LeasePhase.WAITING:
            return views.lease(now, now_ms)
        return views.waiting_lease(fleet, now, now_ms, views.position(fleet, now))

    return answer(await api.engine.read(read))


@post(
    "/v1/leases/{lease_id:str}/heartbeat",
    **described(
        Operation(
            summary="Renew a held lease",
            body=HeartbeatRequest,
            answer=LeaseView,
            role=Role.LESSEE,
            is_busy=True,
            statuses=(404, 409),
        )
    ),
)
async def heartbeat(request: HttpRequest) -> Response[bytes]:
    """Only its holder, or an operator."""
    lease_id = path_text(request, "lease_id")
    api, caller = api_of(request), caller_of(request)
    asked = await body_of(request, HeartbeatRequest)
    await submit(
        api,
        HeartbeatLease(
            lease_id=LeaseId(lease_id),
            epoch=asked.epoch,
            is_operator=caller.may(Role.OPERATOR),
            **of_holder(request, caller),
        ),
    )
    return answer(_shown(api, record_of(api, Lease, lease_id)))


@post(
    "/v1/leases/{lease_id:str}/extend",
    **described(
        Operation(
            summary="Stay longer on a node that is to go",
            body=ExtendRequest,
            answer=LeaseView,
            role=Role.LESSEE,
            statuses=(404, 409),
        )
    ),
)
async def extend(request: HttpRequest) -> Response[bytes]:
    """Only its holder, or an operator; and only as far as `retiring_at_ms_max`."""
    lease_id = path_text(request, "lease_id")
    api, caller = api_of(request), caller_of(request)
    asked = await body_of(request, ExtendRequest)
    await submit(
        api,
        ExtendLease(
            lease_id=LeaseId(lease_id),
            epoch=asked.epoch,
            by_ms=asked.by_ms,
            is_operator=caller.may(Role.OPERATOR),
            **common(request, caller),
        ),
    )
    return answer(_shown(api, record_of(api, Lease, lease_id)))


@post(
    "/v1/leases/{lease_id:str}/release",
    **described(
        Operation(
            summary="Give a lease back, or leave the line",
            body=ReleaseRequest,
            answer=LeaseView,
            role=Role.LESSEE,
            is_busy=True,
            statuses=(404, 409),
        )
    ),
)
async def release(request: HttpRequest) -> Response[bytes]:
    """Only its holder, or an operator. Sent again it changes nothing and is answered alike."""
    lease_id = path_text(request, "lease_id")
    asked = await body_of(request, ReleaseRequest)
    return await _end(
        request, lease_id, LeaseOutcome(asked.outcome), asked.detail, epoch=asked.epoch
    )


@post(
    "/v1/leases/{lease_id:str}/revoke",
    **described(
        Operation(
            summary="Take a lease away from its holder",
            body=RevokeRequest,
            answer=LeaseView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def revoke(request: HttpRequest) -> Response[bytes]:
    """Its node is not held again."""
    lease_id = path_text(request, "lease_id")
    asked = await body_of(request, RevokeRequest)
    return await _end(request, lease_id, LeaseOutcome.REVOKED, asked.detail, epoch=None)


async def _end(
    request: HttpRequest, lease_id: str, outcome: LeaseOutcome, detail: str, *, epoch: int | None
) -> Response[bytes]:
    api, caller = api_of(request), caller_of(request)
    fields_of = common if caller.may(Role.OPERATOR) else of_holder
    await submit(
        api,
        ReleaseLease(
            lease_id=LeaseId(lease_id),
            epoch=epoch,
            outcome=outcome,
            detail=detail,
            is_operator=caller.may(Role.OPERATOR),
            **fields_of(request, caller),
        ),
    )
    return answer(_shown(api, record_of(api, Lease, lease_id)))


def _shown(api: Api, lease: Lease) -> LeaseView:
    """Show a lease as it is now."""
    return views.lease(lease, api.engine.clock.now_ms())


ROUTES = [acquire, plan, list_all, get_one, heartbeat, extend, release, revoke]
