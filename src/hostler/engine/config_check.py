"""Checking a configuration without a server: all that one would say of it before it applies it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hostler.core.absorb.configuration_check import problems_of
from hostler.core.explain.windows import Coming, comings
from hostler.core.fleet import Fleet
from hostler.engine.clock import SystemClock
from hostler.engine.translate import apply_configuration, provider_problems, time_zone_problems
from hostler.providers.registry import Registry
from hostler.wire.documents import ConfigDocument, DocumentProblem


class ConfigCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What came of checking a document that reads well."""

    problems: list[DocumentProblem]
    """What a server would refuse."""
    unknown: list[DocumentProblem]
    """Providers that are not installed here, so that their options were not looked at."""
    next_windows: list[Coming]
    """The next coming of each window, earliest first."""


def check_configuration(document: ConfigDocument) -> ConfigCheck:
    """Hold a document against providers, the zone database and the core; touches nothing."""
    clock = SystemClock()
    registry = Registry(Path(), clock)
    found = [*provider_problems(document, registry), *time_zone_problems(document)]
    unknown = [one for one in found if one.path.endswith(".provider")]
    problems = [one for one in found if one not in unknown]
    if problems:
        return ConfigCheck(problems=problems, unknown=unknown, next_windows=[])
    now_ms = clock.now_ms()
    request = apply_configuration(
        document, now_ms=now_ms, request_id="", principal="", registry=registry
    )
    fleet = Fleet()
    for zone in request.time_zones:
        fleet.write(zone.KIND, zone.key, zone)
    coming: dict[tuple[str, str], Coming] = {}
    for pool in request.pools:
        for each in comings(fleet, pool, now_ms):
            if each.window:
                coming.setdefault((each.pool, each.window), each)
    return ConfigCheck(
        problems=[
            DocumentProblem(path=one.path, code=one.code, message=one.message)
            for one in problems_of(fleet, request)
        ],
        unknown=unknown,
        next_windows=sorted(coming.values(), key=lambda each: (each.from_at_ms, each.pool)),
    )
