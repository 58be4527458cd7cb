"""Bundles: submitting, planning, looking at them and their replicas, deleting."""

from __future__ import annotations

from typing import Final

from litestar import Response, delete, get, post, put
from msgspec.structs import replace

from hostler.api.context import Api, api_of, caller_of
from hostler.api.convert import bundles as views
from hostler.api.errors import HttpRequest, missing
from hostler.api.gateway import accepted_of, bundle_document, common, document_of, submit
from hostler.api.http import (
    PAGING,
    Operation,
    Parameter,
    Query,
    answer,
    described,
    page,
    path_number,
    path_text,
)
from hostler.base.ids import BundleId, ReplicaId, replica_id
from hostler.core.fleet import Fleet
from hostler.core.inputs import DeleteBundle, ResetBundle
from hostler.core.job_inputs import StartJob, StopJob
from hostler.engine import translate
from hostler.model import Bundle, Replica
from hostler.model.token import Role
from hostler.wire.documents import BundleDocument, JobConfigDocument
from hostler.wire.http import BundleView, Page, ReplicaView

REVISION_MAX: Final = 2**53 - 1
"""What every JSON reader can hold."""


async def _view(api: Api, bundle_id: str) -> BundleView:
    def read(fleet: Fleet) -> BundleView | None:
        found = fleet.bundles.get(bundle_id)
        return None if found is None else views.bundle(fleet, found, is_protection_told=True)

    view = await api.engine.read(read)
    if view is None:
        raise missing(Bundle.KIND, bundle_id)
    return view


@post(
    "/v1/bundles",
    **described(
        Operation(
            summary="Create a bundle, or change what is desired of one",
            body=BundleDocument,
            answer=BundleView,
            status=201,
            role=Role.OPERATOR,
            statuses=(404, 409),
            parameters=(
                Parameter("at", "integer", "Only what was planned at this revision; else a 409."),
                Parameter(
                    "if_generation",
                    "integer",
                    "Only if the bundle is at this generation (0: is not there); else a 409.",
                ),
            ),
        )
    ),
)
async def submit_one(request: HttpRequest) -> Response[bytes]:
    """Answers 200 when nothing had to be changed."""
    api, caller = api_of(request), caller_of(request)
    document, query = await bundle_document(request), Query(request)
    now_ms = api.engine.clock.now_ms()
    submission = replace(
        translate.submit_bundle(document, now_ms=now_ms, **common(request, caller)),
        if_generation=query.number("if_generation", most=REVISION_MAX),
    )
    at = query.number("at", most=REVISION_MAX)
    if at is None:
        accepted = await submit(api, submission)
    else:
        accepted = accepted_of(await api.engine.submit_planned(submission, at))
    return answer(await _view(api, document.bundle), 200 if accepted.is_repeat else 201)


@get(
    "/v1/bundles",
    **described(
        Operation(
            summary="List bundles",
            answer=Page[BundleView],
            role=Role.VIEWER,
            parameters=(
                *PAGING,
                Parameter("protection", "boolean", "Say of each which losses would hurt it."),
            ),
        )
    ),
)
async def list_all(request: HttpRequest) -> Response[bytes]:
    """All bundles that are not forgotten."""
    query = Query(request)
    is_told = query.flag("protection")
    return await page(
        request,
        query,
        lambda fleet: fleet.bundles.rows,
        lambda fleet, key: views.bundle(fleet, fleet.bundles[key], is_protection_told=is_told),
    )


@get(
    "/v1/bundles/{bundle_id:str}",
    **described(
        Operation(summary="Get a bundle", answer=BundleView, role=Role.VIEWER, statuses=(404,))
    ),
)
async def get_one(request: HttpRequest) -> Response[bytes]:
    """One bundle, with its replicas counted."""
    bundle_id = path_text(request, "bundle_id")
    return answer(await _view(api_of(request), bundle_id))


@delete(
    "/v1/bundles/{bundle_id:str}",
    **described(
        Operation(
            summary="Stop everything of a bundle, then forget it",
            answer=BundleView,
            status=202,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def delete_one(request: HttpRequest) -> Response[bytes]:
    """Answers at once with the bundle as it is on its way out."""
    bundle_id = path_text(request, "bundle_id")
    api, caller = api_of(request), caller_of(request)
    before = await _view(api, bundle_id)
    await submit(api, DeleteBundle(bundle_id=BundleId(bundle_id), **common(request, caller)))
    found = api.engine.peek(Bundle.KIND, bundle_id)
    return answer(before if found is None else await _after(api, bundle_id, before), 202)


async def _after(api: Api, bundle_id: str, before: BundleView) -> BundleView:
    """Show the bundle, or how it last was when it is gone already."""

    def read(fleet: Fleet) -> BundleView:
        found = fleet.bundles.get(bundle_id)
        return before if found is None else views.bundle(fleet, found)

    return await api.engine.read(read)


@post(
    "/v1/bundles/{bundle_id:str}/jobs/{job:str}/start",
    **described(
        Operation(
            summary="Start the replicas of a job that are dormant, dropped or broken",
            answer=BundleView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def start_job(request: HttpRequest) -> Response[bytes]:
    """The replicas become pending and are placed as others are."""
    bundle_id = path_text(request, "bundle_id")
    job = path_text(request, "job")
    api, caller = api_of(request), caller_of(request)
    await submit(
        api,
        StartJob(bundle_id=BundleId(bundle_id), job=job, **common(request, caller)),
    )
    return answer(await _view(api, bundle_id))


@put(
    "/v1/bundles/{bundle_id:str}/jobs/{job:str}/config",
    **described(
        Operation(
            summary="Let a job work by another configuration",
            body=JobConfigDocument,
            answer=BundleView,
            role=Role.OPERATOR,
            statuses=(404, 409),
            parameters=(
                Parameter(
                    "if_generation",
                    "integer",
                    "Only if the bundle is at this generation; else a 409.",
                ),
            ),
        )
    ),
)
async def configure_job(request: HttpRequest) -> Response[bytes]:
    """Running copies get it in place; later ones start with it. An empty one takes it away."""
    bundle_id = path_text(request, "bundle_id")
    api, caller = api_of(request), caller_of(request)
    document = await document_of(request, JobConfigDocument, "configuration")
    await submit(
        api,
        translate.configure_job(
            document,
            bundle_id=bundle_id,
            job=path_text(request, "job"),
            if_generation=Query(request).number("if_generation", most=REVISION_MAX),
            **common(request, caller),
        ),
    )
    return answer(await _view(api, bundle_id))


@post(
    "/v1/bundles/{bundle_id:str}/jobs/{job:str}/stop",
    **described(
        Operation(
            summary="Stop the replicas of a job until somebody starts it",
            answer=BundleView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def stop_job(request: HttpRequest) -> Response[bytes]:
    """What runs is stopped; nothing of the job is placed until it is started."""
    bundle_id = path_text(request, "bundle_id")
    job = path_text(request, "job")
    api, caller = api_of(request), caller_of(request)
    await submit(
        api,
        StopJob(bundle_id=BundleId(bundle_id), job=job, **common(request, caller)),
    )
    return answer(await _view(api, bundle_id))


@post(
    "/v1/bundles/{bundle_id:str}/reset",
    **described(
        Operation(
            summary="Forget the failures of a bundle's replicas, and try again what was given up",
            answer=BundleView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def reset_one(request: HttpRequest) -> Response[bytes]:
    """Restart histories and avoided nodes go; broken and dropped replicas are placed again."""
    bundle_id = path_text(request, "bundle_id")
    api, caller = api_of(request), caller_of(request)
    await submit(api, ResetBundle(bundle_id=BundleId(bundle_id), **common(request, caller)))
    return answer(await _view(api, bundle_id))


@get(
    "/v1/replicas",
    **described(
        Operation(
            summary="List replicas",
            answer=Page[ReplicaView],
            role=Role.VIEWER,
            parameters=(
                *PAGING,
                Parameter("bundle", "string", "Only those of this bundle."),
                Parameter("phase", "string", "Only those in this phase."),
            ),
        )
    ),
)
async def list_replicas(request: HttpRequest) -> Response[bytes]:
    """Replicas and where they are."""
    query = Query(request)
    bundle, phase = query.text("bundle"), query.text("phase")

    def view(fleet: Fleet, key: str) -> ReplicaView | None:
        found = fleet.replicas[key]
        return None if phase and found.phase != phase else views.replica(fleet, found)

    return await page(
        request,
        query,
        lambda fleet: (
            fleet.index.replicas_by_bundle.keys(bundle) if bundle else fleet.replicas.rows
        ),
        view,
    )


async def _replica_view(request: HttpRequest, key: str) -> Response[bytes]:
    now_ms = api_of(request).engine.clock.now_ms()

    def read(fleet: Fleet) -> ReplicaView | None:
        found = fleet.replicas.get(key)
        return None if found is None else views.replica_now(fleet, found, now_ms)

    view = await api_of(request).engine.read(read)
    if view is None:
        raise missing(Replica.KIND, key)
    return answer(view)


def _replica_key(request: HttpRequest) -> str:
    return replica_id(
        path_text(request, "bundle_id"),
        path_text(request, "job"),
        path_number(request, "index"),
    )


@post(
    "/v1/replicas/{bundle_id:str}/{job:str}/{index:int}/reset",
    **described(
        Operation(
            summary="Forget the failures of one replica, and try again if it was given up",
            answer=ReplicaView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def reset_replica(request: HttpRequest) -> Response[bytes]:
    """Its restart history and the nodes that it avoids are forgotten."""
    api, caller = api_of(request), caller_of(request)
    key = _replica_key(request)
    await submit(
        api,
        ResetBundle(
            bundle_id=BundleId(path_text(request, "bundle_id")),
            replica_id=ReplicaId(key),
            **common(request, caller),
        ),
    )
    return await _replica_view(request, key)


@get(
    "/v1/replicas/{bundle_id:str}/{job:str}/{index:int}",
    **described(
        Operation(summary="Get a replica", answer=ReplicaView, role=Role.VIEWER, statuses=(404,))
    ),
)
async def get_replica(request: HttpRequest) -> Response[bytes]:
    """One replica and where it is."""
    return await _replica_view(request, _replica_key(request))


ROUTES = [
    submit_one,
    list_all,
    get_one,
    delete_one,
    start_job,
    stop_job,
    configure_job,
    reset_one,
    list_replicas,
    get_replica,
    reset_replica,
]
