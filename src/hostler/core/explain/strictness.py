"""Strictness: which rules of a bundle are required, and the bundle without one of them being so.

Goes by the fields themselves, so that a rule of a new kind is found as well.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from hostler.model import Bundle
from hostler.model.bundle import Job

H = TypeVar("H", Bundle, Job)
S = TypeVar("S", bound=msgspec.Struct)


def required_rules(bundle: Bundle, job_name: str) -> list[str]:
    """Return the names of all rules of a bundle and a job that are required and could be less.

    Whatever has an `is_required` is a rule. Those about a domain go by the domain.
    """
    job = bundle.job(job_name)
    holders = [bundle] if job is None else [bundle, job]
    names = [
        _rule_name(field, rule)
        for holder in holders
        for field in holder.__struct_fields__
        for rule in _rules_in(getattr(holder, field))
    ]
    return list(dict.fromkeys(names))


def _rules_in(value: object) -> list[msgspec.Struct]:
    found = value if isinstance(value, tuple) else (value,)
    return [
        each
        for each in found
        if isinstance(each, msgspec.Struct) and getattr(each, "is_required", False) is True
    ]


def _rule_name(field: str, rule: msgspec.Struct) -> str:
    over = getattr(rule, "over", None)
    if field == "spread" and over is not None:
        return str(over)
    return field if over is None else f"{field}.{over}"


def preferred(holder: H, name: str) -> H:
    """Return a bundle or job of which the rules of one name are no longer required."""
    changes: dict[str, object] = {}
    for field in holder.__struct_fields__:
        value = getattr(holder, field)
        asked = [rule for rule in _rules_in(value) if _rule_name(field, rule) == name]
        if asked and isinstance(value, tuple):
            changes[field] = tuple(_less_strict(each) if each in asked else each for each in value)
        elif asked:
            changes[field] = _less_strict(asked[0])
    return msgspec.structs.replace(holder, **changes)


def _less_strict(rule: S) -> S:
    return msgspec.structs.replace(rule, is_required=False)
