"""Which edition of a tier and an offer made a machine, so that a change is seen on the record."""

from __future__ import annotations

from hostler.base.encoding import digest, encode
from hostler.core.provided import without_provided
from hostler.model.pool import Offer, Tier


def version_of(tier: Tier, offer: Offer) -> str:
    """Return a name for all that a machine is made from; a price or a deadline makes no other."""
    own = without_provided(offer.shape, offer.provided)  # what services add makes no other machine
    made_from = (tier.provider, tier.zone, tier.options_json, offer.name, own)
    return digest(encode(made_from))[:12]
