"""The rules about places as one would write them down, one by one, straight from the records."""

from dataclasses import dataclass, field

from hostler.core.fleet import Fleet
from hostler.model import Allocation, Bundle, Node, Replica
from hostler.model.bundle import Job
from hostler.model.constraint import Affinity, SpreadOver, SpreadRule
from hostler.model.node import Health, NodePhase, Origin
from hostler.model.pool import Reliability, TierKind


@dataclass(frozen=True)
class Where:
    """A node, or a machine that does not exist yet."""

    node_id: str
    zone: str
    tier: str
    provider: str
    offer: str
    labels: dict[str, str] = field(default_factory=dict)

    def domain(self, over: SpreadOver, label: str) -> str:
        """Return the domain of a kind."""
        if over is SpreadOver.LABEL:
            return self.labels.get(label, "")
        return {"node": self.node_id, "zone": self.zone, "tier": self.tier}.get(
            over.value, self.provider
        )


NEW = "a machine that does not exist yet"


def where_is(fleet: Fleet, node: Node) -> Where:
    """Return where a node is."""
    pool = fleet.pools.get(node.pool)
    tier = None if pool is None else pool.tier(node.tier)
    labels = {**({} if tier is None else tier.labels), **node.labels}
    provider = node.provider or "own hardware"
    return Where(node.node_id, node.zone, f"{node.pool}/{node.tier}", provider, node.offer, labels)


def rules_hold(fleet: Fleet, bundle: Bundle, job: Job, replica: Replica, where: Where) -> bool:
    """Say whether every required rule about the place holds."""
    live = [a for a in fleet.allocations.rows.values() if a.is_live]
    others = [a for a in live if a.replica_id != replica.replica_id]
    siblings = [a for a in others if (a.bundle_id, a.job) == (bundle.bundle_id, job.name)]
    return (
        all(_at(fleet, a).node_id != where.node_id for a in siblings)
        and _suits(job, where)
        and all(
            _spreads(fleet, bundle, job, replica, rule, siblings, where)
            for rule in bundle.spread
            if rule.is_required
        )
        and _pair_is_apart(fleet, bundle, replica, siblings, where)
        and all(
            _wish_holds(fleet, bundle, job, replica, wish, others, where)
            for wish in job.affinities
            if wish.is_required
        )
        and _nobody_minds(fleet, bundle, job, replica, others, where)
    )


def _at(fleet: Fleet, allocation: Allocation) -> Where:
    return where_is(fleet, fleet.nodes[allocation.node_id])


def _suits(job: Job, where: Where) -> bool:
    for rule in job.node_rules:
        fact = rule.match.attribute
        value = where.labels.get(fact.removeprefix("label:")) if ":" in fact else where.zone
        if rule.is_required and (value in rule.match.values) is rule.is_apart:
            return False
    return True


def _spreads(
    fleet: Fleet,
    bundle: Bundle,
    job: Job,
    replica: Replica,
    rule: SpreadRule,
    siblings: list[Allocation],
    where: Where,
) -> bool:
    taken = [_at(fleet, a).domain(rule.over, rule.label) for a in siblings]
    here = where.domain(rule.over, rule.label)
    if not taken or rule.over is SpreadOver.NODE:
        return True
    if here == "":
        return False
    if rule.skew_max is None:
        return "" not in taken and here not in taken
    domains = _open(fleet, bundle, job, replica, rule)
    least = min((taken.count(each) for each in domains), default=0)
    return taken.count(here) + taken.count("") + 1 - least <= rule.skew_max


def _open(fleet: Fleet, bundle: Bundle, job: Job, replica: Replica, rule: SpreadRule) -> set[str]:
    """Return the domains in which a replica could be if there were room."""
    is_strict = replica.index == 0 and not bundle.is_primary_interruptible
    pools = [fleet.pools.get(name) for name in (bundle.pool, *bundle.fallback_pools)]
    found: set[str] = set()
    for pool in pools:
        if pool is None or not pool.is_enabled:
            continue
        for node in fleet.nodes.rows.values():
            where = where_is(fleet, node)
            is_known = pool.tier(node.tier) is not None
            is_steady = not (is_strict and node.reliability is Reliability.INTERRUPTIBLE)
            if (
                node.pool == pool.name
                and is_known
                and takes_work(node)
                and is_steady
                and _suits(job, where)
            ):
                found.add(where.domain(rule.over, rule.label))
        for tier in pool.tiers:
            is_steady = not (is_strict and tier.reliability is Reliability.INTERRUPTIBLE)
            for offer in tier.offers if tier.kind is TierKind.ELASTIC and is_steady else ():
                key = f"{pool.name}/{tier.name}"
                new = Where(NEW, tier.zone, key, tier.provider, offer.name, tier.labels)
                if _suits(job, new):
                    found.add(new.domain(rule.over, rule.label))
    return found - {""}


def takes_work(node: Node) -> bool:
    """Say whether a node takes new work from anybody."""
    is_coming = (
        node.phase in (NodePhase.REQUESTED, NodePhase.STARTING)
        and node.origin is Origin.LAUNCHED
        and node.launch_failure is None
    )
    return (
        (is_coming or node.phase is NodePhase.READY)
        and node.health is Health.LIVE
        and node.cordon is None
        and node.drain is None
        and node.retire_reason is None
    )


def _is_apart(domain: str, taken: list[str]) -> bool:
    return not taken or (domain != "" and "" not in taken and domain not in taken)


def _pair_is_apart(
    fleet: Fleet, bundle: Bundle, replica: Replica, siblings: list[Allocation], where: Where
) -> bool:
    rule = bundle.backup_apart
    if rule is None or not rule.is_required or replica.index > 1:
        return True
    pair = [a for a in siblings if a.replica_index == 1 - replica.index]
    taken = [_at(fleet, a).domain(rule.over, rule.label) for a in pair]
    return _is_apart(where.domain(rule.over, rule.label), taken)


def _is_meant(wish: Affinity, owner_id: str, bundle: Bundle, job: Job, index: int) -> bool:
    peers = wish.peers
    if peers.labels and not peers.bundle_id:
        is_bundle = True
    else:
        is_bundle = bundle.bundle_id == (peers.bundle_id or owner_id)
    labels = {**bundle.labels, **job.labels}
    return (
        is_bundle
        and peers.job in ("", job.name)
        and peers.replica_index in (None, index)
        and all(labels.get(name) == value for name, value in peers.labels.items())
    )


def _wish_holds(
    fleet: Fleet,
    bundle: Bundle,
    job: Job,
    replica: Replica,
    wish: Affinity,
    others: list[Allocation],
    where: Where,
) -> bool:
    meant = []
    for each in others:
        theirs = fleet.bundles[each.bundle_id]
        their_job = theirs.job(each.job)
        if their_job is not None and _is_meant(
            wish, bundle.bundle_id, theirs, their_job, each.replica_index
        ):
            meant.append(each)
    taken = [_at(fleet, a).domain(wish.over, wish.label) for a in meant]
    here = where.domain(wish.over, wish.label)
    if wish.is_apart:
        return _is_apart(here, taken)
    if not meant and _is_meant(wish, bundle.bundle_id, bundle, job, replica.index):
        return True
    return here != "" and here in taken


def _nobody_minds(
    fleet: Fleet,
    bundle: Bundle,
    job: Job,
    replica: Replica,
    others: list[Allocation],
    where: Where,
) -> bool:
    for each in others:
        owner = fleet.bundles[each.bundle_id]
        their_job = owner.job(each.job)
        for wish in () if their_job is None else their_job.affinities:
            if (
                wish.is_apart
                and wish.is_required
                and _is_meant(wish, owner.bundle_id, bundle, job, replica.index)
            ):
                taken = [_at(fleet, each).domain(wish.over, wish.label)]
                if not _is_apart(where.domain(wish.over, wish.label), taken):
                    return False
    return True
