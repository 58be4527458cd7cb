"""Operators: they cordon, uncordon and drain nodes, and change the configuration."""

from __future__ import annotations

import msgspec

from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyRequest, CordonNode, DrainNode, LabelNode, UncordonNode
from hostler.core.replies import Accepted, Result
from hostler.model import Node
from hostler.model.node import NodePhase
from hostler.sim.client import Client
from hostler.sim.configuration import configuration
from hostler.sim.scenario import ChangeConfiguration, FleetPlan, OperateNodes, PoolPlan, TierPlan
from hostler.sim.server import Server
from hostler.sim.workloads import limits
from hostler.sim.workloads.rhythm import keep_wanting
from hostler.sim.workloads.wishes import RACK, RACKS


class NodeOperators:
    """People who close and open nodes."""

    def __init__(self, client: Client, server: Server, plan: OperateNodes) -> None:
        self._client = client
        self._server = server
        self._plan = plan
        self._rng = client.world.stream("workload", "operators")
        self._label_rng = client.world.stream("workload", "labels")

    def begin(self) -> None:
        """Begin to operate."""
        keep_wanting(self._client.world, self._rng, self._plan.per_hour, self._act)

    def _act(self) -> None:
        self._server.read(self._pick)

    def _pick(self, fleet: Fleet) -> None:
        phases = (NodePhase.STARTING, NodePhase.READY, NodePhase.DRAINING)
        nodes = [node for node in fleet.nodes.in_order() if node.phase in phases]
        if not nodes:
            return
        node = self._rng.choice(nodes)
        rng = self._rng
        if self._label_rng.chance(self._plan.labels_ppm):
            self._label(node)
            return
        is_closed = node.cordon is not None or node.drain is not None
        choice = rng.below(100)
        deadline_ms = rng.between(5_000, 120_000)
        is_forced = rng.chance(500_000)
        then_retire = rng.chance(self._plan.retire_ppm)

        def make(request_id: str) -> AnyRequest:
            common = {"request_id": request_id, "principal": "operator", "node_id": node.node_id}
            if is_closed and choice < 80:
                return msgspec.convert(common, UncordonNode)
            if choice < 50:
                return msgspec.convert({**common, "reason": "made up"}, CordonNode)
            drain = {
                "deadline_ms": deadline_ms,
                "is_forced": is_forced,
                "then_retire": then_retire,
            }
            return msgspec.convert({**common, **drain}, DrainNode)

        self._client.ask(make)

    def _label(self, node: Node) -> None:
        rack = self._label_rng.choice(("", *RACKS))
        self._client.world.probe("operator.labelled")
        self._client.ask(
            lambda request_id: LabelNode(
                request_id=request_id,
                principal="operator",
                node_id=node.node_id,
                labels={RACK: rack},
            )
        )


class Configurers:
    """People who change floors, ceilings, spares and options, and disable or remove pools.

    Attributes:
        current: The configuration that was asked for last.
        ceiling_max: The highest ceiling that each tier ever had.
    """

    def __init__(self, client: Client, fleet: FleetPlan, plan: ChangeConfiguration | None) -> None:
        self._client = client
        self._first = fleet
        self._plan = plan
        self._rng = client.world.stream("workload", "configuration")
        self._limits_rng = client.world.stream("workload", "limits")
        self._is_asking = False
        self.current = fleet
        self.ceiling_max: dict[str, int] = {}

    def begin(self) -> None:
        """Apply the first configuration, then change it now and then."""
        self._apply(self._first)
        if self._plan is not None:
            keep_wanting(self._client.world, self._rng, self._plan.per_hour, self._act)

    def _act(self) -> None:
        if not self._is_asking:
            pools = [self._changed(pool) for pool in self._first.pools]
            if len(pools) > 1 and self._rng.chance(200_000):
                self._client.world.probe("operator.removed_pool")
                pools.pop(self._rng.below(len(pools)))
            if self._rng.chance(100_000):
                self._client.world.probe("operator.disabled_pool")
                number = self._rng.below(len(pools))
                pools[number] = msgspec.structs.replace(pools[number], is_enabled=False)
            settings = self._first.settings
            settings_ppm = 0 if self._plan is None else self._plan.settings_ppm
            if self._limits_rng.chance(settings_ppm):
                self._client.world.probe("operator.changed_limits")
                settings = limits.changed_settings(self._limits_rng, settings)
                pools = [limits.changed_pool(self._limits_rng, pool) for pool in pools]
            self._apply(msgspec.structs.replace(self._first, pools=tuple(pools), settings=settings))

    def settle(self) -> None:
        """Go back to the first configuration, which the fleet is to converge to."""
        self._is_asking = False
        self._apply(self._first)

    def _changed(self, pool: PoolPlan) -> PoolPlan:
        rng = self._rng
        return msgspec.structs.replace(
            pool,
            warm_count=rng.below(pool.warm_count + 2) if pool.warm_count else 0,
            spare_count=rng.below(pool.spare_count + 2) if pool.spare_count else 0,
            tiers=tuple(self._changed_tier(tier) for tier in pool.tiers),
        )

    def _changed_tier(self, tier: TierPlan) -> TierPlan:
        if tier.machine_count:
            return tier
        ceiling = max(1, tier.node_count_max + self._rng.between(-2, 2))
        edition = tier.edition
        if self._rng.chance(150_000):
            self._client.world.probe("operator.swapped_options")
            edition = self._rng.between(1, 2)
        return msgspec.structs.replace(tier, node_count_max=ceiling, edition=edition)

    def _apply(self, plan: FleetPlan) -> None:
        self.current = plan
        self._is_asking = True
        for pool in plan.pools:
            for tier in pool.tiers:
                name = f"{pool.name}/{tier.name}"
                self.ceiling_max[name] = max(self.ceiling_max.get(name, 0), tier.node_count_max)
        self._client.ask(lambda request_id: configuration(request_id, plan), self._applied)

    def _applied(self, result: Result) -> None:
        self._is_asking = False
        if not isinstance(result, Accepted):
            self._client.world.probe("operator.configuration_refused")
