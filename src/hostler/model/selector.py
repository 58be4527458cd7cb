"""Selectors: which labels a node must have for a lease, as people write them.

`rack=a, zone in (x, y), gpu, !slow, tenant!=acme`: all of it must hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hostler.base.errors import Rejected
from hostler.model.record import Value

SELECTOR_RULES_MAX: Final = 16
"""Rules of one selector: each is tried on every kind of node."""

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?"
_RULE: Final = re.compile(
    rf"""(?x)\s*(?:
    (?P<missing>!)\s*(?P<absent>{_NAME})
    | (?P<name>{_NAME})\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\)
    | (?P<equal>{_NAME})\s*(?P<sign>==|=|!=)\s*(?P<value>[^,()=!]*?)
    | (?P<present>{_NAME})
    )\s*(?:,|$)"""
)


class LabelRule(Value, frozen=True, kw_only=True):
    """What one label of a node must be, or must not."""

    label: str
    values: tuple[str, ...] = ()
    """One of these; none: it is there, whatever it is."""
    is_apart: bool = False
    """True: it must not be so. A label that is not there has none of any values."""

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Say whether labels are as wanted."""
        value = labels.get(self.label)
        is_so = value is not None and (not self.values or value in self.values)
        return is_so is not self.is_apart

    @property
    def text(self) -> str:
        """It as people write it."""
        if not self.values:
            return f"!{self.label}" if self.is_apart else self.label
        if len(self.values) == 1:
            return f"{self.label}{'!=' if self.is_apart else '='}{self.values[0]}"
        return f"{self.label} {'notin' if self.is_apart else 'in'} ({', '.join(self.values)})"


def selector_text(rules: tuple[LabelRule, ...]) -> str:
    """Return rules as people write them."""
    return ", ".join(rule.text for rule in rules)


def read_selector(text: str) -> tuple[LabelRule, ...]:
    """Read what somebody has written; in one order, so that equal wishes are equal.

    Raises:
        Rejected: It cannot be read; the message says from where on.
    """
    rules: list[LabelRule] = []
    at = 0
    while at < len(text.rstrip()):
        found = _RULE.match(text, at)
        if found is None or found.end() == at:
            raise Rejected(
                "selector_invalid",
                "a selector is made of NAME=VALUE, NAME!=VALUE, NAME in (A, B), NAME notin (A, B),"
                f" NAME and !NAME with commas between; not so from {text[at:].strip()!r} on",
            )
        rules.append(_rule(found, text))
        at = found.end()
    if text.rstrip().endswith(","):
        raise Rejected("selector_invalid", "nothing follows the last comma of the selector")
    if len(rules) > SELECTOR_RULES_MAX:
        raise Rejected(
            "selector_invalid", f"a selector has {SELECTOR_RULES_MAX} rules at most", text=text
        )
    return tuple(sorted(set(rules), key=lambda rule: rule.text))


def _rule(found: re.Match[str], text: str) -> LabelRule:
    if found["missing"]:
        return LabelRule(label=found["absent"], is_apart=True)
    if found["present"]:
        return LabelRule(label=found["present"])
    given = [found["value"]] if found["equal"] else found["values"].split(",")
    values = tuple(sorted({each.strip() for each in given} - {""}))
    if not values:
        raise Rejected("selector_invalid", "a value is missing in the selector", text=text)
    is_apart = found["sign"] == "!=" or found["set"] == "notin"
    return LabelRule(label=found["equal"] or found["name"], values=values, is_apart=is_apart)
