"""What `hostler describe` says of a pool and its tiers."""

from __future__ import annotations

from hostler.base.units import format_duration
from hostler.cli.output import At, Cell, Column
from hostler.cli.remote import now_ms
from hostler.cli.tables import money_text, shape_text
from hostler.wire.http import (
    BootFailureView,
    ClosingView,
    ConsolidationView,
    OfferView,
    PoolView,
    SpareTargetView,
    TierView,
)


def money_an_hour(microusd: int) -> str | None:
    """Write a price; nothing when there is none."""
    return f"{money_text(microusd)} an hour" if microusd else None


def pool_pairs(view: PoolView) -> list[tuple[str, Cell]]:
    """Give what is said of a pool itself."""
    return [
        ("Pool", view.name),
        ("Takes work", "yes" if view.is_enabled else "no: it is disabled"),
        ("Closed", _closing_text(view.closing)),
        ("Nodes", f"{view.node_count}, {view.ready_count} ready, {view.starting_count} starting"),
        ("Idle", view.idle_count),
        ("Kept warm", view.warm_count),
        ("At least", view.node_count_min or None),
        ("At most", view.node_count_max),
        ("Windows", ", ".join(view.windows) or None),
        ("To be replaced", view.replacing_count or None),
        ("Saves machines", _consolidation_text(view.consolidation)),
        ("Lives for", format_duration(view.age_ms_max) if view.age_ms_max else None),
        ("Spares", ", ".join(map(_spares_text, view.spares)) or view.present_spare_count),
        ("Leases", f"{view.held_count} held, {view.waiting_count} waiting"),
        ("A lease lasts", f"{format_duration(view.lease_ms)} after its last heartbeat"),
        ("and at most", format_duration(view.lease_ms_max) if view.lease_ms_max else None),
    ]


def _spares_text(target: SpareTargetView) -> str:
    return f"{target.present_count} of {target.count} for {target.band or 'gold and silver'}"


def _closing_text(closing: ClosingView | None) -> str | None:
    if closing is None:
        return None
    if closing.is_done:
        return "yes"
    left_ms = max(0, closing.deadline_at_ms - now_ms())
    return f"not yet; what is left is ended in {format_duration(left_ms)}"


def _consolidation_text(view: ConsolidationView | None) -> str | None:
    if view is None:
        return None
    made = f"{view.move_count} of {view.move_count_max} moves made"
    if view.node_id is not None:
        return f"{view.node_id} is being emptied; {made}"
    return f"those used to {view.used_percent_max} % or less; {made}"


TIER_COLUMNS: tuple[Column[TierView], ...] = (
    Column("TIER", lambda view: view.name),
    Column("KIND", lambda view: view.kind),
    Column("PROVIDER", lambda view: view.provider),
    Column("NODES", lambda view: view.node_count),
    Column("AT MOST", lambda view: view.node_count_max or None),
    Column("OFFERS", lambda view: "; ".join(map(_offer_text, view.offers))),
)


def _offer_text(offer: OfferView) -> str:
    parts = [shape_text(offer.shape), money_an_hour(offer.price_microusd_per_hour) or ""]
    if offer.cooling_until_at_ms is not None and offer.cooling_until_at_ms > now_ms():
        rest_ms = offer.cooling_until_at_ms - now_ms()
        parts.append(f"left alone for {format_duration(rest_ms)}")
    return f"{offer.name} ({', '.join(part for part in parts if part)})"


BOOT_COLUMNS: tuple[Column[BootFailureView], ...] = (
    Column("NODE", lambda view: view.node_id),
    Column("OFFER", lambda view: view.offer),
    Column("AGO", lambda view: At(view.at_ms)),
    Column("CODE", lambda view: view.code),
    Column("MESSAGE", lambda view: view.message),
)
