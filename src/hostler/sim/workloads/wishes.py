"""What a bundle wishes beyond room: near whom, apart from whom, how spread, and on which nodes."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from hostler.base.ids import BundleId
from hostler.base.rng import Stream
from hostler.model.bundle import Job
from hostler.model.constraint import Affinity, NodeRule, Peers, SpreadOver, SpreadRule
from hostler.model.disruption import DisruptionBudget
from hostler.model.shape import AttributeMatch, CapabilityRequest, MatchRule

RACK: Final = "rack"
"""The label that operators give nodes and bundles wish about."""

RACKS: Final = ("r1", "r2")

MESH: Final = "mesh"
"""What the node service provides."""

_OVERS: Final = (SpreadOver.NODE, SpreadOver.ZONE, SpreadOver.TIER, SpreadOver.LABEL)


def wishes_of_bundle(rng: Stream, name: str) -> dict[str, Any]:
    """Draw what is asked of all jobs together; a part of it, seldom everything."""
    wishes: dict[str, Any] = {"labels": {"app": f"app{int(name[1:]) % 3}"}}
    match rng.below(6):
        case 0:
            wishes["spread"] = (_spread(rng, skew_max=rng.between(1, 2)),)
        case 1:
            wishes["spread"] = (_spread(rng, skew_max=None),)
        case 2:
            wishes["is_colocated"] = True
        case 3:
            wishes["backup_apart"] = _spread(rng, skew_max=None)
        case 4:
            count = rng.between(1, 2)
            budget = DisruptionBudget(name="b", unavailable_count_max=count)
            wishes["disruption_budgets"] = (budget,)
        case _:
            pass
    return wishes


def with_wishes(rng: Stream, job: Job, *, has_mesh: bool) -> dict[str, Any]:
    """Draw what is asked of the place of one job; return the changes."""
    match rng.below(6):
        case 0 | 1:
            return {"affinities": (_affinity(rng),)}
        case 2:
            return {"node_rules": (_node_rule(rng),)}
        case 3 if has_mesh:
            asked = (*job.requirement.capabilities, CapabilityRequest(name=MESH))
            return {"requirement": replace(job.requirement, capabilities=asked)}
        case _:
            return {}


def _label(over: SpreadOver) -> str:
    return RACK if over is SpreadOver.LABEL else ""


def _spread(rng: Stream, *, skew_max: int | None) -> SpreadRule:
    over = rng.choice(_OVERS[1:])
    is_required = rng.chance(300_000)
    return SpreadRule(over=over, label=_label(over), is_required=is_required, skew_max=skew_max)


def _affinity(rng: Stream) -> Affinity:
    over = rng.choice(_OVERS)
    peers = Peers(labels={"app": f"app{rng.below(3)}"})
    if rng.chance(300_000):
        peers = Peers(bundle_id=BundleId(f"b{rng.between(1, 8)}"))
    return Affinity(
        over=over,
        label=_label(over),
        is_apart=rng.chance(500_000),
        is_required=rng.chance(300_000),
        peers=peers,
    )


def _node_rule(rng: Stream) -> NodeRule:
    match = AttributeMatch(
        attribute=f"label:{RACK}", rule=MatchRule.IN, values=(rng.choice(RACKS),)
    )
    return NodeRule(match=match, is_apart=rng.chance(500_000), is_required=rng.chance(400_000))
