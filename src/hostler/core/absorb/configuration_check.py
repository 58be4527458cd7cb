"""What can be wrong with a configuration, all of it at once, with the path of each problem.

Only what the words mean together is looked at here; that each is well formed was seen to when the
document was read. A provider's own options are the provider's to check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hostler.core import limits
from hostler.core.absorb.budget_check import problems_of_budgets
from hostler.core.absorb.consolidation_check import problems_of_consolidation
from hostler.core.absorb.services_check import problems_of_services
from hostler.core.absorb.sizes_check import problems_of_sizes
from hostler.core.disruption import problems_of_disruption
from hostler.core.fleet import Fleet
from hostler.core.fleet_settings import FleetSettings
from hostler.core.inputs import ApplyConfiguration
from hostler.core.maintenance import problems_of_maintenance
from hostler.core.replies import Problem
from hostler.model import Pool
from hostler.model.pool import Band, Offer, Tier, TierKind
from hostler.model.ready import ReadyCheck

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""Names become parts of keys, labels and paths: no separators, no surprises."""


def problems_of(fleet: Fleet, one: ApplyConfiguration) -> list[Problem]:
    """Return every problem, in the order of the document."""
    found = list(_settings(one.settings))
    found += _repeated("pools", [pool.name for pool in one.pools])
    for number, pool in enumerate(one.pools):
        found += _pool(f"pools[{number}]", pool)
        zones = [zone.name for zone in one.time_zones]
        found += problems_of_sizes(f"pools[{number}]", pool, zones)
        found += problems_of_consolidation(f"pools[{number}]", pool)
    found += problems_of_services(fleet, one)
    disruption, zones = one.settings.disruption_budgets, [zone.name for zone in one.time_zones]
    found += problems_of_disruption("settings.disruption_budgets", disruption, zones)
    plans = one.settings.maintenance
    added = {each.name for each in fleet.maintenances.in_order() if each.added is not None}
    found += problems_of_maintenance("settings.maintenance", plans, one.pools, zones, added)
    found += problems_of_budgets(one.budgets, one.pools)
    return found


def _settings(settings: FleetSettings) -> Iterator[Problem]:
    at = "settings"
    for name, least in (
        ("heartbeat_ms", 1),
        ("suspect_after_ms", 1),
        ("fence_after_ms", 1),
        ("list_every_ms", 1_000),
        ("orphan_grace_ms", 0),
        ("lost_node_count_max", 1),
        ("lost_node_percent_max", 1),
        ("brake_window_ms", 1),
        ("ageing_ms", 0),
    ):
        yield from _at_least(f"{at}.{name}", getattr(settings, name), least)
    recovery, retention = settings.recovery, settings.retention
    for name, least in (
        ("restart_count_max", 0),
        ("bundle_restart_count_max", 0),
        ("restart_window_ms", 1),
        ("spacing_ms", 0),
        ("healthy_after_ms", 0),
        ("exclusion_ms", 0),
    ):
        yield from _at_least(f"{at}.recovery.{name}", getattr(recovery, name), least)
    for name, least in (
        ("rejection_count_max", 1),
        ("rejection_window_ms", 1),
        ("pause_ms", 0),
        ("pause_ms_max", 0),
        ("forget_ms", 0),
    ):
        yield from _at_least(f"{at}.quarantine.{name}", getattr(settings.quarantine, name), least)
    preemption = settings.preemption
    for name, least in (
        ("after_ms", 0),
        ("window_ms", 1),
        ("victim_count_max", 0),
        ("victim_per_bundle_count_max", 0),
    ):
        yield from _at_least(f"{at}.preemption.{name}", getattr(preemption, name), least)
    if Band.BRONZE in preemption.bands:
        yield Problem(
            path=f"{at}.preemption.bands",
            code="nothing_below",
            message="no band is below bronze, so nothing could give way to it",
        )
    for name, least in (
        ("event_count_max", 1),
        ("journal_count_max", 1),
        ("ended_ms", 0),
        ("decision_count_max", 1),
        ("life_count_max", 1),
        ("lives_count_max", 1),
        ("audit_ms", 0),
        ("audit_count_max", 1),
    ):
        yield from _at_least(f"{at}.retention.{name}", getattr(retention, name), least)
    yield from _silence(at, settings)
    for number, bounds in enumerate(settings.providers):
        inside = f"{at}.providers[{number}]"
        yield from _at_least(f"{inside}.launch_count_max", bounds.launch_count_max, 1)
        yield from _at_least(f"{inside}.launches_per_minute_max", bounds.launches_per_minute_max, 1)


def _silence(at: str, settings: FleetSettings) -> Iterator[Problem]:
    """The instants of silence must come in the order in which they are safe."""
    heard_ms = 2 * settings.heartbeat_ms
    for name in ("suspect_after_ms", "fence_after_ms"):
        if getattr(settings, name) < heard_ms:
            yield Problem(
                path=f"{at}.{name}",
                code="shorter_than_heartbeats",
                message=f"must be at least two heartbeats ({heard_ms} ms), or a healthy node fails",
            )
    if settings.lost_after_ms <= settings.suspect_after_ms:
        yield Problem(
            path=f"{at}.lost_after_ms",
            code="lost_before_suspect",
            message=f"must be longer than suspect_after_ms ({settings.suspect_after_ms} ms)",
        )
    fenced_ms = settings.fence_after_ms + limits.FENCE_MARGIN_MS
    if settings.lost_after_ms <= fenced_ms:
        yield Problem(
            path=f"{at}.lost_after_ms",
            code="lost_before_fenced",
            message=f"must be longer than fence_after_ms and its margin ({fenced_ms} ms), or work"
            " is placed twice",
        )
    if settings.retention.ended_ms < settings.brake_window_ms:
        yield Problem(
            path=f"{at}.retention.ended_ms",
            code="shorter_than_brake_window",
            message=f"must be at least brake_window_ms ({settings.brake_window_ms} ms), or lost"
            " nodes are forgotten before they are counted",
        )


def _pool(at: str, pool: Pool) -> Iterator[Problem]:
    yield from _name(f"{at}.name", pool.name)
    if not pool.tiers:
        yield Problem(path=f"{at}.tiers", code="missing", message="a pool needs at least one tier")
    yield from _repeated(f"{at}.tiers", [tier.name for tier in pool.tiers])
    for number, tier in enumerate(pool.tiers):
        yield from _tier(f"{at}.tiers[{number}]", tier)
    for name, least in (
        ("slot_count", 1),
        ("idle_ms", 0),
        ("lease_ms", 1),
        ("lease_ms_max", 1),
        ("clean_up_ms", 1),
        ("retire_notice_ms", 0),
        ("retire_extension_ms_max", 0),
        ("lease_per_key_max", 1),
        ("line_step_ms", 0),
        ("waiting_count_max", 0),
        ("use_count_max", 1),
        ("launch_count_max", 1),
        ("node_count_max", 1),
    ):
        yield from _at_least(f"{at}.{name}", getattr(pool, name), least)
    if pool.ready is not None:
        yield from _ready(f"{at}.ready", pool.ready)
    for number, target in enumerate(pool.spares):
        inside = f"{at}.spares[{number}]"
        yield from _at_least(f"{inside}.count", target.count, 0)
        if target.band is Band.BRONZE:
            yield Problem(
                path=f"{inside}.band",
                code="never_recovers",
                message="bronze work is not recovered, so no spare can be kept for it",
            )
        if target.band in [other.band for other in pool.spares[:number]]:
            yield Problem(
                path=f"{inside}.band",
                code="duplicate",
                message=f"how many are kept for {target.band or 'gold and silver'} is said above",
            )


def _ready(at: str, ready: ReadyCheck) -> Iterator[Problem]:
    if not ready.argv:
        yield Problem(path=f"{at}.argv", code="missing", message="a check needs a command")
    for name, least in (
        ("interval_ms", limits.READY_INTERVAL_MS_MIN),
        ("timeout_ms", 1),
        ("deadline_ms", ready.timeout_ms + 1),
        ("success_count", 1),
    ):
        yield from _at_least(f"{at}.{name}", getattr(ready, name), least)


def _tier(at: str, tier: Tier) -> Iterator[Problem]:
    yield from _name(f"{at}.name", tier.name)
    yield from _at_least(f"{at}.boot_ms", tier.boot_ms, 1)
    yield from _repeated(f"{at}.offers", [offer.name for offer in tier.offers])
    for number, offer in enumerate(tier.offers):
        yield from _offer(f"{at}.offers[{number}]", offer)
    match tier.kind:
        case TierKind.ELASTIC:
            yield from _at_least(f"{at}.node_count_max", tier.node_count_max, 1)
            if not tier.provider:
                yield Problem(
                    path=f"{at}.provider", code="missing", message="an elastic tier needs one"
                )
            if not tier.offers:
                yield Problem(
                    path=f"{at}.offers",
                    code="missing",
                    message="an elastic tier needs at least one kind of machine to launch",
                )
        case TierKind.FIXED:
            yield from _at_least(f"{at}.node_count_max", tier.node_count_max, 0)
            if tier.offers:
                yield Problem(
                    path=f"{at}.offers",
                    code="not_launchable",
                    message="a fixed tier launches nothing; leave the offers out",
                )


def _offer(at: str, offer: Offer) -> Iterator[Problem]:
    yield from _name(f"{at}.name", offer.name)
    yield from _at_least(f"{at}.price_microusd_per_hour", offer.price_microusd_per_hour, 0)
    yield from _at_least(f"{at}.node_count_max", offer.node_count_max, 1)
    shape = offer.shape
    for name in ("capacity", "cores_milli", "memory_bytes"):
        yield from _at_least(f"{at}.shape.{name}", getattr(shape, name), 0)
    capabilities = shape.capabilities or ()
    yield from _repeated(f"{at}.shape.capabilities", [each.name for each in capabilities])
    for number, capability in enumerate(capabilities):
        yield from _at_least(f"{at}.shape.capabilities[{number}].count", capability.count, 0)


def _name(at: str, name: str) -> Iterator[Problem]:
    if not _NAME.fullmatch(name):
        yield Problem(
            path=at,
            code="bad_name",
            message=f"{name!r}: a name has letters, digits, '.', '_' and '-', begins with a letter"
            " or digit, and is at most 63 long",
        )


def _at_least(at: str, value: int | None, least: int) -> Iterator[Problem]:
    if value is not None and value < least:
        yield Problem(path=at, code="too_small", message=f"is {value}, must be at least {least}")


def _repeated(at: str, names: Iterable[str]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for number, name in enumerate(names):
        if name in first:
            yield Problem(
                path=f"{at}[{number}].name",
                code="duplicate_name",
                message=f"{name!r} is taken by {at}[{first[name]}]",
            )
        first.setdefault(name, number)
