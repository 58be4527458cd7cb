"""Bundle documents as requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostler.base.encoding import encode
from hostler.base.errors import Rejected
from hostler.base.ids import BundleId
from hostler.base.units import (
    cores_milli,
    duration_ms,
    local_time_ms,
    size_bytes,
    time_of_day_ms,
)
from hostler.core.calendar import Instant, instant_of
from hostler.core.inputs import SubmitBundle
from hostler.core.job_inputs import ConfigureJob
from hostler.engine.time_zones import read_time_zones
from hostler.engine.translate.disruption import budget_zones, disruption_budgets
from hostler.engine.translate.where import affinities, node_rules, spread_rule
from hostler.model.audit import Origin
from hostler.model.bundle import Fallback, Job, OnFailure, RolloutPolicy
from hostler.model.calendar import TimeZone, Weekday, Window
from hostler.model.launch import (
    AtOnceReadiness,
    DelayReadiness,
    Disconnect,
    ExecReadiness,
    HttpReadiness,
    JobConfig,
    Launch,
    Readiness,
    SdNotifyReadiness,
    TcpReadiness,
)
from hostler.model.pool import Band
from hostler.model.shape import (
    WHOLE_MILLI,
    AttributeMatch,
    CapabilityRequest,
    MatchRule,
    Requirement,
)
from hostler.model.timetable import Missed, Timetable
from hostler.wire.documents import (
    AttributeDocument,
    BundleDocument,
    JobDocument,
    ReadinessDocument,
    WhereDocument,
    WishDocument,
    wish_of,
)
from hostler.wire.documents.bundle import JobConfigDocument, RunDocument, TimetableDocument
from hostler.wire.documents.windows import days_of
from hostler.wire.documents.work import RequiresDocument


def submit_bundle(
    document: BundleDocument,
    *,
    request_id: str,
    principal: str,
    idempotency_key: str = "",
    origin: Origin | None = None,
    now_ms: int = 0,
) -> SubmitBundle:
    """Read a checked document; `now_ms` says which years of its time zone are looked up."""
    table = document.timetable
    zones = () if table is None else read_time_zones([table.time_zone], now_ms)
    budgets = document.disruption_budgets
    return SubmitBundle(
        request_id=request_id,
        principal=principal,
        idempotency_key=idempotency_key,
        origin=origin,
        bundle_id=BundleId(document.bundle),
        pool=document.pool,
        jobs=tuple(_job(job, document.where) for job in document.jobs),
        replica_count=document.replicas,
        fallback_pools=tuple(document.fallback_pools),
        fallback=Fallback(document.fallback),
        is_gang=document.gang,
        spread=tuple(spread_rule(rule) for rule in document.spread),
        is_primary_interruptible=document.primary_interruptible,
        is_colocated=document.colocate,
        backup_apart=(
            None if document.backup_apart is None else spread_rule(document.backup_apart)
        ),
        is_protection_required=document.require_protected,
        is_backup_promoted=document.promote_backup,
        labels=dict(document.labels),
        rollout=RolloutPolicy(
            max_parallel=document.rollout.max_parallel,
            healthy_after_ms=duration_ms(document.rollout.healthy_after),
            progress_within_ms=duration_ms(document.rollout.progress_within),
            on_failure=OnFailure(document.rollout.on_failure),
        ),
        timetable=None if table is None else timetable_of(table, zones),
        disruption_budgets=disruption_budgets(budgets),
        time_zones=(
            *zones,
            *read_time_zones((zone for _, zone in budget_zones("", budgets)), now_ms),
        ),
    )


def timetable_of(document: TimetableDocument, zones: Sequence[TimeZone]) -> Timetable:
    """Read when something runs, or holds; of a zone that is not known, as if it had no ends."""

    def instants(text: str | None) -> Instant | None:
        if text is None or not zones:
            return None  # what has no known zone is refused
        return instant_of(zones[0], local_time_ms(text))

    start, stop = instants(document.start), instants(document.stop)
    return Timetable(
        time_zone=document.time_zone,
        windows=tuple(
            Window(
                time_zone=document.time_zone,
                days=tuple(Weekday(day) for day in days_of(window.days)),
                from_ms=time_of_day_ms(window.start),
                to_ms=time_of_day_ms(window.end),
            )
            for window in document.windows
        ),
        from_at_ms=None if start is None else start.first_at_ms,
        to_at_ms=None if stop is None else stop.last_at_ms,
        missed=Missed(document.missed),
        grace_ms=duration_ms(document.grace),
        is_deleted_after=document.then_delete,
    )


def configure_job(
    document: JobConfigDocument,
    *,
    bundle_id: str,
    job: str,
    if_generation: int | None,
    request_id: str,
    principal: str,
    idempotency_key: str = "",
    origin: Origin | None = None,
) -> ConfigureJob:
    """Read a checked document; an empty one takes the configuration away."""
    return ConfigureJob(
        request_id=request_id,
        principal=principal,
        idempotency_key=idempotency_key,
        origin=origin,
        bundle_id=BundleId(bundle_id),
        job=job,
        config=None if document == JobConfigDocument() else job_config(document),
        if_generation=if_generation,
    )


def _job(document: JobDocument, where: WhereDocument) -> Job:
    return Job(
        name=document.name,
        launch=launch(document.run),
        band=Band(document.band),
        requirement=requirement(document.requires),
        is_dormant=document.dormant,
        labels=dict(document.labels),
        node_rules=node_rules(where, document.where),
        affinities=affinities(where, document.where),
        can_overlap=document.overlap == "allowed",
        config=job_config(document.config),
    )


def job_config(document: JobConfigDocument | None) -> JobConfig | None:
    """Read what a job works by; the core gives it its number."""
    if document is None:
        return None
    return JobConfig(
        values_json=encode(document.values).decode(),
        files=dict(sorted(document.files.items())),
        signal=document.signal,
    )


def requirement(document: RequiresDocument) -> Requirement:
    """Read what a replica or a lease needs."""
    return Requirement(
        capacity=document.capacity,
        cores_milli=cores_milli(document.cores),
        memory_bytes=size_bytes(document.memory),
        capabilities=tuple(
            _wish(name, wish_of(value)) for name, value in sorted(document.capabilities.items())
        ),
    )


def _wish(name: str, document: WishDocument) -> CapabilityRequest:
    if document.milli is not None and document.count != 1:
        raise Rejected("share_of_several", f"{name}: a share is of one unit, so leave out count")
    equal: dict[str, str] = {}
    matches: list[AttributeMatch] = []
    for attribute, asked in sorted(document.attributes.items()):
        if isinstance(asked, str):
            equal[attribute] = asked
        else:
            matches += _matches(attribute, asked)
    return CapabilityRequest(
        name=name,
        count=document.count,
        milli=document.milli or WHOLE_MILLI,
        attributes=equal,
        matches=tuple(matches),
    )


def _matches(attribute: str, asked: AttributeDocument) -> Iterator[AttributeMatch]:
    if asked.is_in:
        values = tuple(sorted(set(asked.is_in)))
        yield AttributeMatch(attribute=attribute, rule=MatchRule.IN, values=values)
    if asked.at_least is not None:
        values = (str(asked.at_least),)
        yield AttributeMatch(attribute=attribute, rule=MatchRule.AT_LEAST, values=values)
    if asked.exists:
        yield AttributeMatch(attribute=attribute, rule=MatchRule.EXISTS)


def launch(document: RunDocument) -> Launch:
    """Read how a job is run."""
    return Launch(
        argv=tuple(document.argv),
        env=dict(document.env),
        readiness=_readiness(document.readiness),
        ready_within_ms=duration_ms(document.ready_within),
        stop_signal=document.stop.signal,
        stop_grace_ms=duration_ms(document.stop.grace),
        log_file_bytes_max=size_bytes(document.logs.file_size),
        log_file_count_max=document.logs.files,
        disconnect=Disconnect(document.disconnect),
    )


def _readiness(document: ReadinessDocument | None) -> Readiness:
    if document is None:
        return AtOnceReadiness()
    if (http := document.http) is not None:
        return HttpReadiness(
            port=http.port,
            path=http.path,
            interval_ms=duration_ms(http.interval),
            timeout_ms=duration_ms(http.timeout),
        )
    if (tcp := document.tcp) is not None:
        return TcpReadiness(
            port=tcp.port,
            interval_ms=duration_ms(tcp.interval),
            timeout_ms=duration_ms(tcp.timeout),
        )
    if (probe := document.exec) is not None:
        return ExecReadiness(
            argv=tuple(probe.argv),
            interval_ms=duration_ms(probe.interval),
            timeout_ms=duration_ms(probe.timeout),
        )
    if document.delay is not None:
        return DelayReadiness(delay_ms=duration_ms(document.delay))
    return AtOnceReadiness() if document.sd_notify is None else SdNotifyReadiness()
