"""What work needs and where it may be, as a person would say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.base.units import format_size
from hostler.cli.tables import cores_text

if TYPE_CHECKING:
    from hostler.wire.http import (
        AffinityView,
        JobView,
        MatchView,
        NodeRuleView,
        RequirementView,
        SpreadView,
    )


def match_text(match: MatchView) -> str:
    """Say what is asked of an attribute."""
    match match.rule:
        case "in":
            return f"{match.attribute} in {'|'.join(match.values)}"
        case "at_least":
            return f"{match.attribute}>={match.values[0]}"
        case "exists":
            return f"{match.attribute} exists"


def domain_text(over: str, label: str) -> str:
    """Name a kind of domain."""
    return f"label {label}" if label else over


def spread_text(spread: SpreadView) -> str:
    """Say over what replicas are spread, and how evenly."""
    skew = "" if spread.skew_max is None else f" evenly, give or take {spread.skew_max}"
    domain = domain_text(spread.over, spread.label)
    return f"{domain}{skew}{'' if spread.is_required else ' if possible'}"


def requirement_text(requirement: RequirementView) -> str:
    """Write what work needs on one line."""
    parts = []
    if requirement.capacity:
        parts.append(f"capacity {requirement.capacity}")
    if requirement.cores_milli:
        parts.append(f"{cores_text(requirement.cores_milli)} cores")
    if requirement.memory_bytes:
        parts.append(format_size(requirement.memory_bytes))
    for one in requirement.capabilities:
        asked = [f"{name}={value}" for name, value in one.attributes.items()]
        asked += map(match_text, one.matches)
        amount = f"{one.milli}/1000" if one.milli < 1_000 else f"{one.count}"
        parts.append(f"{amount} {one.name}" + (f" ({' '.join(asked)})" if asked else ""))
    return ", ".join(parts) or "nothing"


def where_text(job: JobView) -> str | None:
    """Say where the replicas of a job may be; `None`: anywhere."""
    rules = [_node_rule_text(rule) for rule in job.node_rules]
    rules += [_affinity_text(rule) for rule in job.affinities]
    return "; ".join(rules) or None


def _node_rule_text(rule: NodeRuleView) -> str:
    told = match_text(rule.match).replace("label:", "")
    return f"{'not ' if rule.is_apart else ''}{told}{'' if rule.is_required else ' if possible'}"


def _affinity_text(rule: AffinityView) -> str:
    names = [f"{name}={value}" for name, value in rule.labels.items()]
    if rule.bundle_id:
        names.append(f"bundle {rule.bundle_id}")
    if rule.job:
        names.append(f"job {rule.job}")
    if rule.replica_index is not None:
        names.append(f"copy {rule.replica_index}")
    how = "apart from" if rule.is_apart else "near"
    whom = " ".join(names) or "its own bundle"
    domain = domain_text(rule.over, rule.label)
    return f"{how} {whom} by {domain}{'' if rule.is_required else ' if possible'}"
