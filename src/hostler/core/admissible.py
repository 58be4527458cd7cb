"""Admissible: everything that is wrong with a bundle as submitted, at once and with its place.

What is right and merely has no room now is accepted and waits. Refused is what no change of the
fleet by itself could ever serve: a requirement that fits no offer, where no fixed tier exists that
a larger machine could join.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from hostler.core.admissible_rules import rule_problems
from hostler.core.disruption import problems_of_disruption
from hostler.core.fleet import Fleet
from hostler.core.inputs import SubmitBundle
from hostler.core.limits import JOB_COUNT_MAX, REPLICA_COUNT_MAX
from hostler.core.placement.buy import hopeless_parts
from hostler.core.placement.demand import together
from hostler.core.replies import Problem
from hostler.model.launch import (
    AtOnceReadiness,
    DelayReadiness,
    ExecReadiness,
    HttpReadiness,
    Launch,
    SdNotifyReadiness,
    TcpReadiness,
)
from hostler.model.pool import Tier
from hostler.model.reason import Reason
from hostler.model.shape import Requirement

NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""A DNS label (RFC 1123, 2.1): lower case, digits and inner hyphens, 63 at most."""

_SIGNAL: Final = re.compile(r"SIG[A-Z][A-Z0-9]{1,9}")
_FIELDS: Final = {
    Reason.CAPACITY: "capacity",
    Reason.CORES: "cores_milli",
    Reason.MEMORY: "memory_bytes",
    Reason.CAPABILITY_MISSING: "capabilities",
    Reason.CAPABILITY_COUNT: "capabilities",
    Reason.CAPABILITY_ATTRIBUTE: "capabilities",
}


def problems_of(fleet: Fleet, one: SubmitBundle) -> list[Problem]:
    """Return everything that is wrong with a bundle; empty when it can be accepted."""
    return [
        *_bundle_problems(one),
        *_pool_problems(fleet, one),
        *_job_problems(fleet, one),
        *_timetable_problems(fleet, one),
    ]


def _problem(path: str, code: str, message: str) -> Problem:
    return Problem(path=path, code=code, message=message)


def _name_problem(path: str, name: str) -> Iterator[Problem]:
    if NAME.fullmatch(name) is None:
        yield _problem(
            path,
            "name_invalid",
            "use 1 to 63 lower case letters, digits and inner hyphens",
        )


def _bundle_problems(one: SubmitBundle) -> Iterator[Problem]:
    yield from _name_problem("bundle_id", one.bundle_id)
    if not 1 <= one.replica_count <= REPLICA_COUNT_MAX:
        message = f"choose a number from 1 to {REPLICA_COUNT_MAX}"
        yield _problem("replica_count", "out_of_range", message)
    yield from rule_problems(one)


def _timetable_problems(fleet: Fleet, one: SubmitBundle) -> Iterator[Problem]:
    """A zone that nobody knows must not fall back to another."""
    known = {zone.name for zone in one.time_zones} | fleet.time_zones.rows.keys()
    yield from problems_of_disruption("disruption_budgets", one.disruption_budgets, known)
    if one.timetable is None:
        return
    if one.timetable.time_zone not in known:
        yield _problem(
            "timetable.time_zone",
            "unknown_time_zone",
            f"the zone database has no {one.timetable.time_zone!r}; write it like Europe/Berlin",
        )
    if one.timetable.grace_ms < 0:
        yield _problem("timetable.grace_ms", "out_of_range", "choose 0 or more")


def _pool_problems(fleet: Fleet, one: SubmitBundle) -> Iterator[Problem]:
    seen: set[str] = set()
    named = [("pool", one.pool)]
    named += [(f"fallback_pools[{n}]", name) for n, name in enumerate(one.fallback_pools)]
    for path, name in named:
        pool = fleet.pools.get(name)
        if name in seen:
            yield _problem(path, "duplicate", f"the pool {name} is named already")
        elif pool is None:
            known = ", ".join(sorted(fleet.pools.rows)) or "none"
            yield _problem(path, "pool_unknown", f"there is no pool {name}; pools are: {known}")
        elif not pool.is_enabled:
            message = f"the pool {name} has left the configuration and takes no new work"
            yield _problem(path, "pool_disabled", message)
        seen.add(name)
    pools = [fleet.pools[name] for _, name in named if name in fleet.pools]
    if pools and not any(tier.has_agents for pool in pools for tier in pool.tiers):
        told = "the machines of its providers run no agent of ours: they take leases and no jobs"
        yield _problem("pool", "no_agents", told)


def _job_problems(fleet: Fleet, one: SubmitBundle) -> Iterator[Problem]:
    if not 1 <= len(one.jobs) <= JOB_COUNT_MAX:
        yield _problem("jobs", "out_of_range", f"give from 1 to {JOB_COUNT_MAX} jobs")
    tiers = _tiers(fleet, one)
    first_by_name: dict[str, int] = {}
    for number, job in enumerate(one.jobs):
        path = f"jobs[{number}]"
        yield from _name_problem(f"{path}.name", job.name)
        if job.name in first_by_name:
            message = f"jobs[{first_by_name[job.name]}] has the same name"
            yield _problem(f"{path}.name", "duplicate", message)
        first_by_name.setdefault(job.name, number)
        yield from _launch_problems(f"{path}.launch", job.launch)
        wrong = list(_requirement_problems(f"{path}.requirement", job.requirement))
        yield from wrong
        if not wrong and tiers:
            yield from _hopes(f"{path}.requirement", job.requirement, tiers)
    if one.is_colocated and tiers and len(one.jobs) > 1:
        yield from _hopes("jobs", together(one.jobs), tiers)


def _tiers(fleet: Fleet, one: SubmitBundle) -> list[Tier]:
    pools = [fleet.pools.get(name) for name in (one.pool, *one.fallback_pools)]
    tiers = [tier for pool in pools if pool is not None for tier in pool.tiers]
    return [tier for tier in tiers if tier.has_agents]


def _hopes(path: str, requirement: Requirement, tiers: Sequence[Tier]) -> Iterator[Problem]:
    parts = hopeless_parts(requirement, list(tiers))
    if parts is None:
        return
    message = "no offer of these pools has as much, and they have no fixed tier"
    fields = list(dict.fromkeys(_FIELDS[part] for part in parts if part in _FIELDS))
    for field in fields:
        yield _problem(f"{path}.{field}", "requirement_unsatisfiable", message)
    if not fields:
        together = "no single offer of these pools has all of it, and they have no fixed tier"
        yield _problem(path, "requirement_unsatisfiable", together)


def _requirement_problems(path: str, requirement: Requirement) -> Iterator[Problem]:
    for field in ("capacity", "cores_milli", "memory_bytes"):
        if getattr(requirement, field) < 0:
            yield _problem(f"{path}.{field}", "out_of_range", "must not be negative")
    for number, request in enumerate(requirement.capabilities):
        where = f"{path}.capabilities[{number}]"
        if not request.name:
            yield _problem(f"{where}.name", "empty", "name the capability")
        if request.count < 1:
            yield _problem(f"{where}.count", "out_of_range", "must be at least 1")


def _launch_problems(path: str, launch: Launch) -> Iterator[Problem]:
    if not launch.argv or not launch.argv[0]:
        yield _problem(f"{path}.argv", "empty", "give the command and its arguments as a list")
    for number, part in enumerate(launch.argv):
        if "\0" in part:
            yield _problem(f"{path}.argv[{number}]", "invalid", "must not hold a zero byte")
    for name, value in launch.env.items():
        if not name or "=" in name or "\0" in name + value:
            message = "a variable's name is not empty, and neither = nor a zero byte is in it"
            yield _problem(f"{path}.env.{name}", "invalid", message)
    if _SIGNAL.fullmatch(launch.stop_signal) is None:
        message = "name a signal, such as SIGTERM"
        yield _problem(f"{path}.stop_signal", "invalid", message)
    for field, least in (
        ("ready_within_ms", 1),
        ("stop_grace_ms", 0),
        ("log_file_bytes_max", 1),
        ("log_file_count_max", 1),
    ):
        if getattr(launch, field) < least:
            yield _problem(f"{path}.{field}", "out_of_range", f"must be at least {least}")
    yield from _readiness_problems(f"{path}.readiness", launch)


def _readiness_problems(path: str, launch: Launch) -> Iterator[Problem]:
    match launch.readiness:
        case HttpReadiness(port=port) | TcpReadiness(port=port):
            if not 1 <= port <= 65_535:
                yield _problem(f"{path}.port", "out_of_range", "choose a port from 1 to 65535")
        case ExecReadiness(argv=argv):
            if not argv or not argv[0]:
                yield _problem(f"{path}.argv", "empty", "give the command and its arguments")
        case DelayReadiness(delay_ms=delay_ms):
            if not 0 <= delay_ms < launch.ready_within_ms:
                message = "must be shorter than ready_within_ms, or it is never ready in time"
                yield _problem(f"{path}.delay_ms", "out_of_range", message)
        case SdNotifyReadiness() | AtOnceReadiness():
            pass
    for field in ("interval_ms", "timeout_ms"):
        if getattr(launch.readiness, field, 1) < 1:
            yield _problem(f"{path}.{field}", "out_of_range", "must be at least 1")
