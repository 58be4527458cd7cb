"""Documents and messages keep their meaning on the way in and out."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.base.errors import Rejected
from hostler.base.ids import AllocationId, BundleId, CommandId, NodeId, ReplicaId
from hostler.core.fleet import Fleet
from hostler.engine.clock import SystemClock
from hostler.engine.translate import (
    agent_command,
    allocation_facts,
    apply_configuration,
    provider_problems,
    shape_of,
    submit_bundle,
)
from hostler.engine.translate.bundles import requirement
from hostler.model import Allocation, Settings
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.bundle import Fallback
from hostler.model.command import StartAllocation
from hostler.model.consolidation import ConsolidationPolicy
from hostler.model.constraint import SpreadOver, SpreadRule
from hostler.model.launch import (
    AtOnceReadiness,
    DelayReadiness,
    Disconnect,
    ExecReadiness,
    HttpReadiness,
    Launch,
    Readiness,
    SdNotifyReadiness,
    TcpReadiness,
)
from hostler.model.pool import Band, Reliability, Reuse, SpareTarget, TierKind
from hostler.model.service import ServiceLife, ServiceSpec
from hostler.model.settings import BronzeVictims, Preemption
from hostler.model.shape import Capability, CapabilityRequest, Device, Requirement, Shape
from hostler.providers.registry import Registry
from hostler.testing.builders import a_node
from hostler.wire import agent as wire
from hostler.wire import work
from hostler.wire.documents import AttributeDocument, WishDocument, read_bundles, read_config
from hostler.wire.documents.work import RequiresDocument

CONFIG = """
fleet:
  id: studio
  timing: {heartbeat: 1s, lost_after: 90s}
  recovery: {restarts_max: 3}
  retention: {ended: 1m}
pools:
  live:
    warm: 2
    spares: {count: 1, band: gold}
    slots: 3
    lease_max: 2h
    uses_max: 9
    tiers:
      - name: own
        kind: fixed
      - name: cloud
        kind: elastic
        provider: local
        reliability: interruptible
        zone: z1
        node_count_max: 5
        boot: 3m
        offers:
          - name: gpu
            shape: {capacity: 10, cores: "2.5", memory: 4GiB, capabilities: {gpu: 2}}
            price_per_hour: "0.35"
        options: {machines_max: 5}
"""

BUNDLE = """
bundle: news
pool: live
fallback_pools: [spare]
replicas: 2
spread: [{over: zone, required: true}]
primary_interruptible: false
labels: {team: a}
jobs:
  - name: encoder
    band: gold
    requires:
      capacity: 3
      cores: 500m
      memory: 1GiB
      capabilities: {gpu: {count: 1, attributes: {model: a10}}}
    run:
      argv: [encode, "${HOSTLER_JOB}"]
      env: {A: b}
      readiness: {http: {port: 80, path: /up, interval: 1s, timeout: 3s}}
      ready_within: 2m
      stop: {signal: SIGINT, grace: 4s}
      logs: {file_size: 1MiB, files: 2}
      disconnect: keep
  - name: logger
    dormant: true
    run: {argv: [log]}
"""


def registry() -> Registry:
    return Registry(Path("unused"), SystemClock())


def test_a_configuration_says_the_same_as_its_document() -> None:
    document = read_config(CONFIG).require()
    request = apply_configuration(document, now_ms=0, request_id="r", principal="me")
    assert (request.fleet_id, request.principal) == ("studio", "me")
    settings = request.settings
    assert (settings.heartbeat_ms, settings.lost_after_ms) == (1_000, 90_000)
    assert settings.recovery.restart_count_max == 3
    assert settings.retention.ended_ms == 60_000
    (pool,) = request.pools
    assert (pool.warm_count, pool.spares) == (2, (SpareTarget(count=1, band=Band.GOLD),))
    assert (pool.slot_count, pool.lease_ms_max, pool.use_count_max) == (3, 7_200_000, 9)
    own, cloud = pool.tiers
    assert (own.kind, own.provider, own.offers) == (TierKind.FIXED, "", ())
    assert (cloud.kind, cloud.reliability) == (TierKind.ELASTIC, Reliability.INTERRUPTIBLE)
    assert (cloud.zone, cloud.node_count_max, cloud.boot_ms) == ("z1", 5, 180_000)
    assert cloud.options_json == '{"machines_max":5}'
    (offer,) = cloud.offers
    assert offer.price_microusd_per_hour == 350_000
    assert offer.shape == Shape(
        capacity=10,
        cores_milli=2_500,
        memory_bytes=4 * 2**30,
        capabilities=(Capability(name="gpu", count=2),),
    )


def test_a_fleet_without_a_name_is_given_one_that_nobody_else_has() -> None:
    document = read_config("").require()
    names = {
        apply_configuration(document, now_ms=0, request_id="r", principal="me").fleet_id
        for _ in range(3)
    }
    assert len(names) == 3


def test_providers_say_everything_that_is_wrong_with_their_tiers() -> None:
    text = CONFIG.replace("{machines_max: 5}", "{machines_max: lots, machins: 1}")
    text += "  other:\n    tiers: [{name: t, kind: fixed, provider: lokal}]\n"
    problems = provider_problems(read_config(text).require(), registry())
    assert [(one.path, one.code) for one in problems] == [
        ("pools.live.tiers[1].options.machines_max", "wrong_type"),
        ("pools.live.tiers[1].options.machins", "unknown_key"),
        ("pools.other.tiers[0].provider", "request_invalid"),
    ]
    assert "did you mean local?" in problems[-1].message
    assert provider_problems(read_config(CONFIG).require(), registry()) == []


def test_a_bundle_says_the_same_as_its_document() -> None:
    document = read_bundles(BUNDLE)[0].require()
    request = submit_bundle(document, request_id="r", principal="me", idempotency_key="k")
    assert (request.bundle_id, request.pool, request.idempotency_key) == ("news", "live", "k")
    assert (request.fallback_pools, request.replica_count) == (("spare",), 2)
    assert request.spread == (SpreadRule(over=SpreadOver.ZONE, is_required=True),)
    assert (request.is_primary_interruptible, request.labels) == (False, {"team": "a"})
    encoder, logger = request.jobs
    assert (encoder.name, encoder.band, encoder.is_dormant) == ("encoder", Band.GOLD, False)
    assert encoder.requirement == Requirement(
        capacity=3,
        cores_milli=500,
        memory_bytes=2**30,
        capabilities=(CapabilityRequest(name="gpu", count=1, attributes={"model": "a10"}),),
    )
    assert encoder.launch == Launch(
        argv=("encode", "${HOSTLER_JOB}"),
        env={"A": "b"},
        readiness=HttpReadiness(port=80, path="/up", interval_ms=1_000, timeout_ms=3_000),
        ready_within_ms=120_000,
        stop_signal="SIGINT",
        stop_grace_ms=4_000,
        log_file_bytes_max=2**20,
        log_file_count_max=2,
        disconnect=Disconnect.KEEP,
    )
    assert (logger.is_dormant, logger.launch.readiness) == (True, AtOnceReadiness())


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{tcp: {port: 5}}", TcpReadiness(port=5)),
        ("{exec: {argv: [a, b]}}", ExecReadiness(argv=("a", "b"))),
        ("{sd_notify: {}}", SdNotifyReadiness()),
        ("{delay: 3s}", DelayReadiness(delay_ms=3_000)),
    ],
)
def test_every_readiness_is_understood(written: str, meant: Readiness) -> None:
    text = f"bundle: b\npool: p\njobs: [{{name: j, run: {{argv: [x], readiness: {written}}}}}]"
    document = read_bundles(text)[0].require()
    request = submit_bundle(document, request_id="r", principal="me")
    assert request.jobs[0].launch.readiness == meant


READINESSES: list[tuple[Readiness, work.Readiness]] = [
    (HttpReadiness(port=1), work.HttpReadiness(port=1, interval_ms=500, timeout_ms=2_000)),
    (TcpReadiness(port=1), work.TcpReadiness(port=1, interval_ms=500, timeout_ms=2_000)),
    (
        ExecReadiness(argv=("a",)),
        work.ExecReadiness(argv=["a"], interval_ms=500, timeout_ms=5_000),
    ),
    (SdNotifyReadiness(), work.SdNotifyReadiness()),
    (DelayReadiness(delay_ms=1), work.DelayReadiness(delay_ms=1)),
    (AtOnceReadiness(), work.NoReadiness()),
]


@pytest.mark.parametrize(("readiness", "told"), READINESSES, ids=lambda one: type(one).__name__)
def test_an_agent_is_told_all_of_a_launch(readiness: Readiness, told: work.Readiness) -> None:
    launch = Launch(argv=("run",), env={"A": "b"}, readiness=readiness, disconnect=Disconnect.KEEP)
    allocation = Allocation(
        allocation_id=AllocationId("a-1"),
        replica_id=ReplicaId("news/encoder/1"),
        bundle_id=BundleId("news"),
        job="encoder",
        replica_index=1,
        role="backup",
        band=Band.GOLD,
        node_id=NodeId("n-1"),
        epoch=4,
        requirement=Requirement(),
        launch=launch,
        devices={"gpu": ("0", "1")},
        phase=AllocationPhase.STARTING,
        phase_since_at_ms=0,
        created_at_ms=0,
    )
    fleet = Fleet()
    fleet.load(
        [Settings(fleet_id="f"), a_node("n-1"), allocation], revision=1, event_seq=0, now_ms=0
    )
    command = StartAllocation(
        node_id=NodeId("n-1"), node_epoch=2, allocation_id=AllocationId("a-1"), epoch=4
    )
    message = agent_command(fleet, CommandId("a-1/start/4"), command)
    assert message == wire.StartAllocation(
        command_id="a-1/start/4",
        node_epoch=2,
        allocation_id="a-1",
        epoch=4,
        launch=work.Launch(
            argv=["run"],
            env={"A": "b"},
            readiness=told,
            ready_within_ms=60_000,
            stop_grace_ms=10_000,
            log_file_bytes_max=10 * 2**20,
            log_file_count_max=3,
            disconnect="keep",
            identity=work.Identity(
                fleet_id="f",
                bundle_id="news",
                job="encoder",
                replica_index=1,
                role="backup",
                replica_id="news/encoder/1",
                pool="p",
                tier="own",
            ),
            devices={"gpu": ["0", "1"]},
        ),
    )


@pytest.mark.parametrize("cause", work.EndCause)
def test_every_cause_of_an_end_is_understood(cause: work.EndCause) -> None:
    report = work.AllocationReport(
        allocation_id="a-1",
        epoch=3,
        phase=work.AllocationPhase.ENDED,
        at_ms=9,
        started_at_ms=8,
        ended=work.Ended(cause=cause, signal="SIGKILL", message="why"),
    )
    (fact,) = allocation_facts([report])
    assert (fact.allocation_id, fact.epoch, fact.phase, fact.started_at_ms) == (
        "a-1",
        3,
        "ended",
        8,
    )
    assert fact.ended == Ended(cause=EndCause(cause.value), signal=9, message="why")


def test_a_signal_that_this_host_does_not_know_is_no_number() -> None:
    report = work.AllocationReport(
        allocation_id="a-1",
        epoch=1,
        phase=work.AllocationPhase.ENDED,
        at_ms=9,
        ended=work.Ended(cause=work.EndCause.EXITED, signal="SIGEMT"),
    )
    (fact,) = allocation_facts([report])
    assert fact.ended == Ended(cause=EndCause.EXITED)


def test_what_is_not_reported_stays_so() -> None:
    assert shape_of(work.Inventory()) == Shape(capabilities=None)
    shape = shape_of(
        work.Inventory(
            capacity=1,
            cores_milli=2,
            memory_bytes=3,
            capabilities=[work.Capability(name="gpu", attributes={"ecc": True, "slot": 4})],
            devices=[work.Device(kind="gpu", id="0")],
        )
    )
    assert shape == Shape(
        capacity=1,
        cores_milli=2,
        memory_bytes=3,
        capabilities=(Capability(name="gpu", count=1, attributes={"ecc": "true", "slot": "4"}),),
        devices=(Device(kind="gpu", device_id="0"),),
    )


def test_a_wish_may_be_for_a_share_and_by_rules() -> None:
    asked = WishDocument(
        milli=250,
        attributes={
            "vendor": "nvidia",
            "model": AttributeDocument(is_in=("l4", "a10")),
            "gib": AttributeDocument(at_least=24, exists=True),
        },
    )
    (wish,) = requirement(RequiresDocument(capabilities={"gpu": asked})).capabilities
    assert (wish.name, wish.count, wish.milli) == ("gpu", 1, 250)
    assert wish.attributes == {"vendor": "nvidia"}
    assert list(map(str, wish.matches)) == ["gib>=24", "gib exists", "model in a10|l4"]


def test_a_share_is_of_one_unit() -> None:
    with pytest.raises(Rejected, match="a share is of one unit"):
        requirement(RequiresDocument(capabilities={"gpu": WishDocument(count=2, milli=500)}))


POLICIES = """
fleet:
  placement:
    ageing: 10m
    preemption:
      {bands: [gold], after: 5s, window: 1h, victims_max: 7, victims_per_bundle_max: 2,
       bronze_victims: drop}
pools:
  live:
    reuse: pool
    node_count_max: 9
    tiers:
      - name: cloud
        kind: elastic
        provider: local
        node_count_max: 3
        offers:
          - {name: ours, mode: reserved, node_count_max: 2}
          - {name: cheap, mode: spot, price_per_hour: "0.1"}
          - {name: sure, price_per_hour: "1"}
"""


def test_policies_of_placement_say_the_same_as_their_document() -> None:
    request = apply_configuration(
        read_config(POLICIES).require(), now_ms=0, request_id="r", principal="ann"
    )
    assert request.settings.ageing_ms == 600_000
    assert request.settings.preemption == Preemption(
        bands=(Band.GOLD,),
        after_ms=5_000,
        window_ms=3_600_000,
        victim_count_max=7,
        victim_per_bundle_count_max=2,
        bronze_victims=BronzeVictims.DROP,
    )
    (pool,) = request.pools
    assert (pool.reuse, pool.node_count_max) == (Reuse.POOL, 9)
    told = [(offer.mode.value, offer.node_count_max) for offer in pool.tiers[0].offers]
    assert told == [("reserved", 2), ("spot", None), ("on_demand", None)]
    reliabilities = [pool.tiers[0].reliability_of(offer) for offer in pool.tiers[0].offers]
    assert reliabilities.count(Reliability.INTERRUPTIBLE) == 1


def test_a_gang_and_its_fallback_say_the_same_as_their_document() -> None:
    (document,) = read_bundles(
        "bundle: b\npool: p\nfallback_pools: [q]\nfallback: when_unavailable\ngang: true\n"
        "jobs: [{name: main, run: {argv: [work]}}]\n"
    )
    request = submit_bundle(document.require(), request_id="r", principal="ann")
    assert (request.fallback, request.is_gang) == (Fallback.WHEN_UNAVAILABLE, True)


def test_maintenance_and_consolidation_are_read() -> None:
    text = """
fleet:
  maintenance:
    - name: kernels
      pools: [p]
      labels: {rack: a}
      time_zone: Europe/Berlin
      windows: [{days: [tuesday], start: "03:00", end: "04:00"}]
    - {name: once, nodes: [n-000001], time_zone: UTC, start: "2026-12-06T02:00",
       stop: "2026-12-06T05:00", lead: 1h, force: true, reason: loud}
pools:
  p: {tiers: [{name: own, kind: fixed}], consolidation: {used_max: 30, move_cost: "0.5"}}
  q: {tiers: [{name: own, kind: fixed}], consolidation: {enabled: false}}
"""
    document = read_config(text).require()
    one = apply_configuration(document, now_ms=0, request_id="r", principal="ann")
    weekly, once = one.settings.maintenance
    (window,) = weekly.timetable.windows
    assert (weekly.pools, weekly.labels, weekly.lead_ms) == (("p",), {"rack": "a"}, 900_000)
    assert (window.time_zone, window.days, window.from_ms) == ("Europe/Berlin", (1,), 10_800_000)
    assert (once.node_ids, once.lead_ms, once.is_forced) == (("n-000001",), 3_600_000, True)
    assert once.timetable.to_at_ms == (once.timetable.from_at_ms or 0) + 3 * 3_600_000
    assert [zone.name for zone in one.time_zones] == ["Europe/Berlin", "UTC"]
    saving, other = (pool.consolidation for pool in one.pools)
    assert saving == ConsolidationPolicy(used_percent_max=30, move_cost_micros=500_000)
    assert other is None


def test_services_and_disruption_budgets_are_read() -> None:
    text = """
fleet:
  disruption_budgets:
    - name: show
      labels: {team: video}
      unavailable_max: 0
      ready_min: 2
      windows: [{time_zone: Europe/Berlin, days: [weekend], start: "18:00", end: "02:00"}]
pools: {p: {tiers: [{name: own, kind: fixed}]}}
services:
  router:
    life: lazy
    pools: [p]
    tiers: [p/own]
    consumes: {cores: 500m, capabilities: {card: 1}}
    provides: {ndi: 4}
    run: {argv: [router], ready_within: 20s}
    patience: 10s
    linger: 1m
"""
    document = read_config(text).require()
    one = apply_configuration(document, now_ms=0, request_id="r", principal="ann")
    (budget,) = one.settings.disruption_budgets
    assert (budget.labels, budget.unavailable_count_max, budget.ready_count_min) == (
        {"team": "video"},
        0,
        2,
    )
    (window,) = budget.windows
    assert (window.days, window.from_ms, window.to_ms) == ((5, 6), 64_800_000, 7_200_000)
    assert [zone.name for zone in one.time_zones] == ["Europe/Berlin"]
    (service,) = one.services
    assert (service.name, service.job.band, service.job.requirement.cores_milli) == (
        "router",
        Band.GOLD,
        500,
    )
    assert service.spec == ServiceSpec(
        life=ServiceLife.LAZY,
        pools=("p",),
        tiers=("p/own",),
        provides=(Capability(name="ndi", count=4),),
        patience_ms=10_000,
        linger_ms=60_000,
    )
