"""Survey: every node of one tier held against one demand, in numbers and a few examples.

The numbers of all who ask alike come from a kept ranking; an overlay says what is different for the
replica itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from hostler.core.limits import RANKINGS_MAX
from hostler.core.placement.columns import CODES, FITS, Columns
from hostler.core.placement.demand import Demand
from hostler.core.placement.feasible import FILTERS, Place
from hostler.core.placement.overlay import Overlay
from hostler.core.placement.ranking import Ranking
from hostler.core.placement.score import Market, Scored, particular
from hostler.model.reason import Reason
from hostler.model.trace import FilteredNode

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a tier, sorted out for one replica."""

    candidate_count: int
    fitting_count: int
    count_by_reason: Mapping[Reason, int]
    """How many nodes each filter was the first to refuse."""
    shown: tuple[FilteredNode, ...]
    """The first nodes that are refused, by id, up to a bound."""
    ranked: tuple[Scored, ...]
    """The best nodes that fit, best first, up to a bound."""
    columns: Columns
    overlay: Overlay

    def refused_for(self, reason: Reason) -> Iterator[Place]:
        """Give the nodes that a filter was the first to refuse, by id; only until the next step."""
        for row in np.flatnonzero(self.overlay.codes() == CODES[reason]).tolist():
            place = self.columns.places[row]
            if place is not None:
                yield place


def survey_of(demand: Demand, fleet: Fleet, pool: str, tier: str) -> Survey:
    """Look at the nodes of one tier for one replica."""
    index = fleet.index.places
    columns = index.in_tier(fleet, pool, tier)
    ranking = _ranking(demand, columns, columns.market(index.mix))
    overlay = Overlay(demand, ranking)
    counts = overlay.counts()
    ranked = [ranking.score(row) for row in overlay.best()]
    if not overlay.is_empty:
        ranked = [particular(demand, each) for each in ranked]
    return Survey(
        candidate_count=columns.count,
        fitting_count=counts.get(FITS, 0),
        count_by_reason={
            FILTERS[code - 1]: count for code, count in sorted(counts.items()) if code != FITS
        },
        shown=overlay.shown(counts),
        ranked=tuple(ranked),
        columns=columns,
        overlay=overlay,
    )


def _ranking(demand: Demand, columns: Columns, market: Market) -> Ranking:
    kept: dict[tuple[str, ...], Ranking] = columns.rankings
    key = (demand.line, demand.band, demand.spares, str(demand.is_reliable_required))
    found = kept.get(key)
    if (
        found is not None
        and (
            found.demand.requirement is demand.requirement
            or found.demand.requirement == demand.requirement
        )
        and found.demand.node_rules == demand.node_rules
    ):
        found.refresh(market)
        return found
    if len(kept) >= RANKINGS_MAX:
        del kept[next(iter(kept))]
    plain = msgspec.structs.replace(
        demand,
        rules=(),
        bundle_count_by_node={},
        avoided=frozenset(),
        rejected=frozenset(),
    )
    found = kept[key] = Ranking(plain, columns, market)
    return found
