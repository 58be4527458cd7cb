"""Open domains: where replicas could be spread to, counted node by node as nodes change.

An even spread is measured against the emptiest domain, so it matters which domains there are: those
with a node that takes work and is of the wanted kind, full or not, and those in which a tier could
launch one. A zone that is lost is none of them, so it does not hold back what was there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.core.limits import RANKINGS_MAX
from hostler.core.placement.resilience import broken_node_rules, domains_of_new
from hostler.model.constraint import NodeRule
from hostler.model.pool import Reliability, TierKind

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet
    from hostler.core.placement.columns import Columns

_Kind = tuple[str, tuple[NodeRule, ...], tuple[Reliability, ...]]


class OpenDomains:
    """The domains of one tier that are open to work of one kind."""

    def __init__(self, columns: Columns, kind: _Kind) -> None:
        self._columns = columns
        self._domain, self._node_rules, self._wanted = kind
        self._build()

    def _build(self) -> None:
        self.counts: dict[str, int] = {}
        """Nodes by domain."""
        self._values: dict[int, str] = {}
        self._generation, self._position = self._columns.generation, len(self._columns.log)
        for row in range(len(self._columns.ids)):
            self._set(row)

    def refresh(self) -> None:
        """Follow the columns."""
        columns = self._columns
        if self._generation != columns.generation:
            self._build()
        elif self._position != len(columns.log):
            for row in dict.fromkeys(columns.log[self._position :]):
                self._set(row)
            self._position = len(columns.log)

    def _set(self, row: int) -> None:
        before = self._values.pop(row, "")
        if before:
            self.counts[before] -= 1
            if not self.counts[before]:
                del self.counts[before]
        place = self._columns.places[row]
        if (
            place is None
            or place.standing
            or place.node.reliability not in self._wanted
            or broken_node_rules(self._node_rules, place.domains, is_required=True)
        ):
            return
        value = place.domains.value(self._domain)
        if value:
            self._values[row] = value
            self.counts[value] = self.counts.get(value, 0) + 1


def open_domains_of(
    fleet: Fleet,
    pools: tuple[str, ...],
    node_rules: tuple[NodeRule, ...],
    wanted: tuple[Reliability, ...],
    domain: str,
) -> set[str]:
    """Return the domains of a kind in which a replica could be, now or when there is room."""
    found: set[str] = set()
    for name in pools:
        pool = fleet.pools.get(name)
        if pool is None or not pool.is_enabled:
            continue
        for tier in pool.tiers:
            columns = fleet.index.places.in_tier(fleet, name, tier.name)
            kept: dict[_Kind, OpenDomains] = columns.open_domains
            kind = (domain, node_rules, wanted)
            known = kept.get(kind)
            if known is None:
                if len(kept) >= RANKINGS_MAX:
                    del kept[next(iter(kept))]
                known = kept[kind] = OpenDomains(columns, kind)
            known.refresh()
            found.update(known.counts)
            if tier.has_agents and tier.kind is TierKind.ELASTIC and tier.reliability in wanted:
                for offer in tier.offers:
                    new = domains_of_new(pool, tier, offer)
                    if not broken_node_rules(node_rules, new, is_required=True):
                        found.add(new.value(domain) or "")
    return found - {""}
