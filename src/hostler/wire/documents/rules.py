"""What must hold between the fields of a document, beyond the type of each.

Each rule looks at the smallest part that it concerns, and is tried whenever that part itself can be
judged, so that a typing error in one pool does not hide what is wrong in another.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import TypeVar

import msgspec

from hostler.base.encoding import encode
from hostler.base.errors import Rejected
from hostler.base.units import duration_ms, local_time_ms, money_microusd
from hostler.wire.documents.bundle import (
    CONFIG_BYTES_MAX,
    REPLICA_COUNT_MAX,
    BundleDocument,
    JobConfigDocument,
    RunDocument,
    TimetableDocument,
)
from hostler.wire.documents.config import (
    ConfigDocument,
    PoolDocument,
    ServerDocument,
    TierDocument,
    TimingDocument,
)
from hostler.wire.documents.consolidation import ConsolidationDocument
from hostler.wire.documents.disruption import (
    DisruptionBudgetDocument,
    FleetDisruptionBudgetDocument,
)
from hostler.wire.documents.maintenance import MaintenanceDocument
from hostler.wire.documents.problem import DocumentProblem
from hostler.wire.documents.ready import ReadyDocument
from hostler.wire.documents.spend_rules import spend_rules
from hostler.wire.documents.tree import Plain, child_path
from hostler.wire.documents.where import (
    DomainDocument,
    NodeLabelDocument,
    PeersDocument,
    SpreadDocument,
)
from hostler.wire.documents.windows import WindowDocument

P = TypeVar("P", bound=msgspec.Struct)
Problems = Iterator[DocumentProblem]


def is_loopback(host: str) -> bool:
    """Say whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _Parts:
    """The fitted value of a document, part by part."""

    def __init__(self, fitted: Plain) -> None:
        self._fitted = fitted

    def rule(self, path: str, kind: type[P], rule: Callable[[P, str], Problems]) -> Problems:
        """Try a rule on the part at a path, if it is there and sound enough to be judged."""
        found = self.value(path)
        if found is None:
            return
        try:
            yield from list(rule(msgspec.convert(found, kind), path))
        except (msgspec.ValidationError, Rejected):
            return  # what is wrong with the part itself has been told

    def unique(self, path: str, noun: str) -> Problems:
        """Demand that no two members of a list have one name."""
        seen: set[object] = set()
        for member in self.members(path):
            found = self.value(member)
            name = found.get("name") if isinstance(found, dict) else None
            if isinstance(name, str) and name in seen:
                yield _problem(
                    child_path(member, "name"),
                    "duplicate",
                    f"another {noun} above is named `{name}`; names are unique here",
                )
            seen.add(name)

    def value(self, path: str) -> Plain:
        """Return the plain value at a path, or `None`."""
        found = self._fitted
        for step in path.replace("[", ".[").split(".") if path else []:
            if step.startswith("[") and isinstance(found, list):
                found = found[int(step[1:-1])]
            elif isinstance(found, dict):
                found = found.get(step)
            else:
                return None
        return found

    def members(self, path: str) -> list[str]:
        """Return the paths of a mapping's or a list's members."""
        found = self.value(path)
        if isinstance(found, dict):
            return [child_path(path, name) for name in found]
        if isinstance(found, list):
            return [child_path(path, index) for index in range(len(found))]
        return []


def rules_of(document: type, fitted: Plain) -> list[DocumentProblem]:
    """Try all rules of a kind of document."""
    parts = _Parts(fitted)
    if document is ConfigDocument:
        return list(_config_rules(parts))
    if document is BundleDocument:
        return list(_bundle_rules(parts))
    if document is MaintenanceDocument:
        return list(parts.rule("", MaintenanceDocument, _maintenance))
    if document is JobConfigDocument:
        return list(parts.rule("", JobConfigDocument, _config))
    return []


def _config_rules(parts: _Parts) -> Problems:
    yield from parts.rule("fleet.timing", TimingDocument, _timing)
    yield from parts.rule("server", ServerDocument, _server)
    yield from spend_rules(parts.value(""))
    for pool in parts.members("pools"):
        yield from parts.rule(pool, PoolDocument, _pool)
        yield from parts.rule(f"{pool}.ready", ReadyDocument, _ready)
        yield from parts.rule(f"{pool}.consolidation", ConsolidationDocument, _consolidation)
        yield from parts.unique(f"{pool}.tiers", "tier")
        yield from parts.unique(f"{pool}.windows", "window")
        for window in parts.members(f"{pool}.windows"):
            yield from parts.rule(window, WindowDocument, _window)
        for tier in parts.members(f"{pool}.tiers"):
            yield from parts.rule(tier, TierDocument, _tier)
            yield from parts.unique(f"{tier}.offers", "offer")

    yield from parts.unique("fleet.disruption_budgets", "budget")
    for budget in parts.members("fleet.disruption_budgets"):
        yield from parts.rule(budget, FleetDisruptionBudgetDocument, _budget)
    yield from parts.unique("fleet.maintenance", "maintenance")
    for plan in parts.members("fleet.maintenance"):
        yield from parts.rule(plan, MaintenanceDocument, _maintenance)
    for service in parts.members("services"):
        yield from parts.rule(f"{service}.run", RunDocument, _run)
        yield from parts.rule(f"{service}.config", JobConfigDocument, _config)


def _bundle_rules(parts: _Parts) -> Problems:
    yield from parts.rule("", BundleDocument, _bundle)
    yield from parts.unique("jobs", "job")
    yield from parts.unique("disruption_budgets", "budget")
    for budget in parts.members("disruption_budgets"):
        yield from parts.rule(budget, DisruptionBudgetDocument, _budget)
    yield from parts.rule("backup_apart", DomainDocument, _domain)
    for rule in parts.members("spread"):
        yield from parts.rule(rule, SpreadDocument, _spread)
    for where in ("where", *(f"{job}.where" for job in parts.members("jobs"))):
        for label in parts.members(f"{where}.nodes"):
            yield from parts.rule(label, NodeLabelDocument, _node_label)
        for peers in (*parts.members(f"{where}.near"), *parts.members(f"{where}.apart")):
            yield from parts.rule(peers, PeersDocument, _domain)
    for job in parts.members("jobs"):
        yield from parts.rule(f"{job}.run", RunDocument, _run)
        yield from parts.rule(f"{job}.config", JobConfigDocument, _config)
    yield from parts.rule("timetable", TimetableDocument, _timetable)


def _problem(path: str, code: str, message: str) -> DocumentProblem:
    return DocumentProblem(path=path, code=code, message=message)


def _timing(timing: TimingDocument, path: str) -> Problems:
    for shorter, longer in (
        ("heartbeat", "suspect_after"),
        ("suspect_after", "lost_after"),
        ("fence_after", "lost_after"),
        ("heartbeat", "fence_after"),
    ):
        low, high = getattr(timing, shorter), getattr(timing, longer)
        if duration_ms(low) >= duration_ms(high):
            yield _problem(
                child_path(path, longer),
                "bad_order",
                f"`{longer}` ({high}) must be longer than `{shorter}` ({low})",
            )
    if duration_ms(timing.heartbeat) == 0:
        yield _problem(child_path(path, "heartbeat"), "too_small", "must be longer than nothing")


def _server(server: ServerDocument, path: str) -> Problems:
    if server.tls is None and not is_loopback(server.bind):
        yield _problem(
            child_path(path, "bind"),
            "tls_required",
            f"listening on {server.bind} needs `tls` with `cert` and `key`; or bind to 127.0.0.1",
        )


def _ready(ready: ReadyDocument, path: str) -> Problems:
    named = [bool(ready.command), ready.tcp is not None, ready.http is not None]
    if sum(named) != 1:
        yield _problem(path, "one_of", "name exactly one of `command`, `tcp` and `http`")
    if duration_ms(ready.deadline) <= duration_ms(ready.timeout):
        yield _problem(
            child_path(path, "deadline"),
            "bad_order",
            f"`deadline` ({ready.deadline}) must be longer than `timeout` ({ready.timeout})",
        )


def _pool(pool: PoolDocument, path: str) -> Problems:
    tiers = child_path(path, "tiers")
    if not pool.tiers:
        yield _problem(tiers, "too_short", "a pool needs at least one tier")
    if pool.lease_max is not None and duration_ms(pool.lease_max) < duration_ms(pool.lease):
        yield _problem(
            child_path(path, "lease_max"),
            "bad_order",
            f"`lease_max` ({pool.lease_max}) must not be shorter than `lease` ({pool.lease})",
        )
    if pool.node_count_max is not None and pool.min > pool.node_count_max:
        yield _problem(
            child_path(path, "min"),
            "bad_order",
            f"`min` ({pool.min}) must not be more than `node_count_max` ({pool.node_count_max})",
        )
    if pool.rollout.surge == 0 and pool.rollout.unavailable == 0:
        yield _problem(
            child_path(path, "rollout"),
            "never_replaces",
            "with neither `surge` nor `unavailable` no machine could ever be replaced",
        )
    if duration_ms(pool.lease) == 0:
        yield _problem(child_path(path, "lease"), "too_small", "must be longer than nothing")


def _consolidation(policy: ConsolidationDocument, path: str) -> Problems:
    for name, least in (("settle", "1s"), ("window", "1s"), ("spacing", policy.settle)):
        given = getattr(policy, name)
        if duration_ms(given) < duration_ms(least):
            told = f"`{name}` ({given}) must be {least} or longer"
            yield _problem(child_path(path, name), "too_small", told)


def _window(window: WindowDocument, path: str) -> Problems:
    if not window.days:
        yield _problem(child_path(path, "days"), "too_short", "name at least one day")
    if window.warm is None and window.min is None and window.node_count_max is None:
        yield _problem(path, "missing_key", "a window sets `warm`, `min` or `node_count_max`")


def _budget(budget: DisruptionBudgetDocument, path: str) -> Problems:
    if budget.unavailable_max is None and budget.ready_min is None:
        yield _problem(path, "missing_key", "a budget sets `unavailable_max` or `ready_min`")


def _tier(tier: TierDocument, path: str) -> Problems:
    if tier.kind == "fixed":
        if tier.offers:
            yield _problem(
                child_path(path, "offers"),
                "not_here",
                "a fixed tier launches nothing; remove `offers` or make it elastic",
            )
        return
    if money_microusd(tier.price_per_hour):
        yield _problem(
            child_path(path, "price_per_hour"),
            "not_here",
            "the offers of an elastic tier have prices; a fixed tier has one of its own",
        )
    for name, is_there, told in (
        ("provider", bool(tier.provider), "who launches its machines"),
        ("node_count_max", tier.node_count_max is not None, "how many machines it may have"),
        ("offers", bool(tier.offers), "what it can launch"),
    ):
        if not is_there:
            yield _problem(
                child_path(path, name), "missing_key", f"an elastic tier needs `{name}`: {told}"
            )


def _bundle(bundle: BundleDocument, path: str) -> Problems:
    fallbacks = child_path(path, "fallback_pools")
    for index, name in enumerate(bundle.fallback_pools):
        if name == bundle.pool or name in bundle.fallback_pools[:index]:
            yield _problem(
                child_path(fallbacks, index), "duplicate", f"`{name}` is tried already; remove it"
            )
    spreads = child_path(path, "spread")
    for index, rule in enumerate(bundle.spread):
        above = [(other.over, other.label) for other in bundle.spread[:index]]
        if (rule.over, rule.label) in above:
            yield _problem(
                child_path(spreads, index), "duplicate", f"a rule over {rule.over} stands above"
            )
    count = len(bundle.jobs) * bundle.replicas
    if count > REPLICA_COUNT_MAX:
        yield _problem(
            child_path(path, "replicas"),
            "too_large",
            f"{len(bundle.jobs)} jobs with {bundle.replicas} copies each are {count} replicas;"
            f" a bundle has {REPLICA_COUNT_MAX} at most",
        )


def _domain(rule: DomainDocument | PeersDocument, path: str) -> Problems:
    if (rule.over == "label") is (rule.label is None):
        told = "name the label" if rule.label is None else "only a rule over a label names one"
        code = "missing_key" if rule.label is None else "not_here"
        yield _problem(child_path(path, "label"), code, told)


def _spread(rule: SpreadDocument, path: str) -> Problems:
    yield from _domain(rule, path)
    if rule.over == "node" and rule.skew is not None:
        told = "two replicas of one job are never on one node, so leave out `skew`"
        yield _problem(child_path(path, "skew"), "not_here", told)


def _node_label(rule: NodeLabelDocument, path: str) -> Problems:
    if not any((rule.is_in, rule.not_in, rule.at_least is not None, rule.exists is not None)):
        told = "say what its value is to be: `in`, `not_in`, `at_least` or `exists`"
        yield _problem(path, "missing_key", told)


def _timetable(timetable: TimetableDocument, path: str) -> Problems:
    start, stop = timetable.start, timetable.stop
    if not timetable.windows and start is None and stop is None:
        yield _problem(path, "missing_key", "a timetable has `windows`, a `start` or a `stop`")
    if start is not None and stop is not None and local_time_ms(stop) <= local_time_ms(start):
        yield _problem(
            child_path(path, "stop"),
            "bad_order",
            f"`stop` ({stop}) must be after `start` ({start})",
        )
    windows = child_path(path, "windows")
    for index, window in enumerate(timetable.windows):
        if not window.days:
            at = child_path(child_path(windows, index), "days")
            yield _problem(at, "too_short", "name at least one day")


def _maintenance(plan: MaintenanceDocument, path: str) -> Problems:
    if not (plan.pools or plan.labels or plan.nodes):
        yield _problem(path, "missing_key", "say which nodes: `pools`, `labels` or `nodes`")
    if not plan.windows and None in (plan.start, plan.stop):
        yield _problem(path, "missing_key", "give `windows`, or both `start` and `stop`")
    timetable = TimetableDocument(
        time_zone=plan.time_zone, windows=plan.windows, start=plan.start, stop=plan.stop
    )
    for problem in _timetable(timetable, path):
        if problem.path != path:
            yield problem


def _run(run: RunDocument, path: str) -> Problems:
    if run.readiness is not None:
        given = [name for name in run.readiness.__struct_fields__ if _is_given(run.readiness, name)]
        if len(given) != 1:
            yield _problem(
                child_path(path, "readiness"),
                "exactly_one",
                "give exactly one of http, tcp, exec, sd_notify or delay"
                + (f", not {' and '.join(given)}" if given else ""),
            )
    if run.stop.signal not in signal.Signals.__members__:
        yield _problem(
            child_path(path, "stop.signal"), "unknown_choice", f"no signal {run.stop.signal} here"
        )


def _config(config: JobConfigDocument, path: str) -> Problems:
    size_bytes = len(encode((config.values, config.files)))
    if size_bytes > CONFIG_BYTES_MAX:
        told = f"it has {size_bytes} bytes as JSON, and {CONFIG_BYTES_MAX} at most may be delivered"
        yield _problem(path, "too_large", told)


def _is_given(value: msgspec.Struct, name: str) -> bool:
    return getattr(value, name) is not None
