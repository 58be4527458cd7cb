"""The stage of a trial: one small world, and the verbs that scripts are made of.

Everything is what every simulated history has (real core, real agents' core, a cloud with a bill
of its own); only who asks for what, and what goes wrong, is the script's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import fields, replace

from hostler.base.ids import MachineId, NodeId
from hostler.base.units import duration_ms
from hostler.core.events import Event, EventKind
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyRequest, ApplyConfiguration, DrainNode
from hostler.core.replies import Accepted, Refused, Result
from hostler.engine.boundaries import Boundary
from hostler.model import Lease, Node, Pool
from hostler.model.node import NodePhase
from hostler.sim.cloud import CloudMachine
from hostler.sim.configuration import configuration
from hostler.sim.history import History
from hostler.sim.scenario import Phases, Scenario
from hostler.sim.trials.tenant import Tenant
from hostler.sim.trials.trial import Trial
from hostler.sim.trials.watch import Watch
from hostler.sim.world import Violation

_EVENTS_MAX: Final = 3_000_000

_READABLE_MS: Final = 10
"""The longest that a calm disk takes to make a step durable."""


class Stage(History):
    """One trial under way."""

    def __init__(
        self, trial: Trial, seed: int = 1, *, tell: Callable[[str], None] | None = None
    ) -> None:
        scenario = Scenario(
            title=f"{trial.name}: {trial.right}",
            fleet=trial.fleet,
            cloud=trial.cloud,
            machines=trial.machines,
            phases=Phases(safety_ms=0, liveness_ms=3_600_000),
            ticks_max=_EVENTS_MAX,
        )
        super().__init__(scenario, seed, tell=tell)
        self.trial = trial
        self.watch = Watch(self.world, self.disk, self.checkers.promises)
        self.checkers = self.server.checkers = self.watch
        self.tenants: list[Tenant] = []
        asked = configuration("", trial.fleet)
        self._pools = {
            pool.name: replace(pool, **trial.pool_changes[pool.name]) for pool in asked.pools
        }
        self._changes: dict[str, Any] = {}
        self._first_pools = dict(self._pools)

    def act(self) -> None:
        """Play the script, then let everybody go, and see that nothing is left behind."""
        self.world.is_calm = True  # only what the script does goes wrong
        self.server.start()
        self.configure()
        self.world.after(2_000, self.hardware.begin)
        self._watch_over()
        self.wait("1s")
        self.trial.script(self)
        for tenant in self.tenants:
            tenant.leave()
        self._pools = dict(self._first_pools)
        self.cloud.answers = None
        self.configurers.settle = self.configure  # type: ignore[method-assign]  # the trial's own
        self.heal()

    # -- time --------------------------------------------------------------------------------

    def wait(self, duration: str | int) -> None:
        """Let time pass."""
        self.run_for(duration if isinstance(duration, int) else duration_ms(duration))

    def until(self, holds: Callable[[], bool], what: str, *, within: str, step: int = 1_000) -> int:
        """Let time pass until something is so, and return how long that took.

        Raises:
            Violation: It does not become so.
        """
        begun_at_ms = self.world.now_ms
        while not holds():
            if self.world.now_ms - begun_at_ms >= duration_ms(within):
                raise Violation("trial_failed", f"not within {within}: {what}", **self.summary())
            self.wait(step)
        return self.world.now_ms - begun_at_ms

    def expect(self, is_so: bool, what: str, **seen: Any) -> None:  # noqa: FBT001 - reads as said
        """Check what must be so here.

        Raises:
            Violation: It is not.
        """
        if not is_so:
            raise Violation("trial_failed", f"not so: {what}", **seen, **self.summary())

    def summary(self) -> dict[str, Any]:
        """Return what is there, for whoever reads of a failure."""
        fleet = self.fleet
        return {
            "nodes": " ".join(
                f"{n.node_id}:{n.phase.value}:{n.lease_count}" for n in fleet.nodes.in_order()
            ),
            "leases": " ".join(
                f"{each.lease_id}:{each.phase.value}:{each.reason and each.reason.value}"
                for each in fleet.leases.in_order()
            )[:2_000],
        }

    # -- what is there -----------------------------------------------------------------------

    @property
    def fleet(self) -> Fleet:
        """The committed fleet, as the server has it."""
        for _ in range(100):
            process = self.server.process
            if process is not None and process.fleet.open_delta is None:
                return process.fleet
            self.wait(_READABLE_MS)
        raise Violation("trial_failed", "there is no server to be asked")

    def nodes(self, *phases: NodePhase, pool: str = "") -> list[Node]:
        """Return nodes that are not retired, or those of some phases."""
        return [
            node
            for node in self.fleet.nodes.in_order()
            if (node.phase in phases if phases else node.phase is not NodePhase.RETIRED)
            and (not pool or node.pool == pool)
        ]

    def ready(self, pool: str = "") -> list[Node]:
        """Return nodes that take work."""
        return [node for node in self.nodes(NodePhase.READY, pool=pool) if node.takes_work]

    def free(self, pool: str = "") -> list[Node]:
        """Return nodes that take work and hold nothing."""
        return [node for node in self.ready(pool) if not node.is_held]

    def billed(self) -> list[CloudMachine]:
        """Return the machines that the provider bills now."""
        return self.cloud.existing()

    def born_count(self) -> int:
        """Return how many machines the provider ever made."""
        return len(self.cloud.machines)

    def told(self, kind: EventKind, **about: str) -> list[Event]:
        """Return what was told of one kind."""
        return [
            event
            for event in self.watch.events
            if event.kind is kind and about.items() <= event.about.items()
        ]

    def machine_of(self, node_id: str) -> CloudMachine:
        """Return the machine behind a node."""
        return self.cloud.machines[MachineId(str(self.fleet.nodes[node_id].machine_id))]

    # -- who asks for what -------------------------------------------------------------------

    def configure(self, name: str = "", **changes: Any) -> None:
        """Apply the configuration, with changes of one pool or of all of them."""
        for pool in [self._pools[name]] if name else list(self._pools.values()):
            self._pools[pool.name] = _changed(pool, changes)
        self.apply()

    def close_pools(self, *names: str) -> None:
        """Take pools out of the configuration, all unless some are named."""
        for name in names or list(self._pools):
            del self._pools[name]
        self.apply()

    def reopen(self) -> None:
        """Go back to the first configuration."""
        self._pools = dict(self._first_pools)
        self.apply()

    def apply(self, **changes: Any) -> None:
        """Apply the configuration with changes beside pools, which stay."""
        self._changes |= changes
        pools = tuple(self._pools.values())
        for pool in pools:
            for tier in pool.tiers:
                name = f"{pool.name}/{tier.name}"
                before = self.configurers.ceiling_max.get(name, 0)
                self.configurers.ceiling_max[name] = max(before, tier.node_count_max)

        def make(request_id: str) -> ApplyConfiguration:
            given = replace(configuration(request_id, self.scenario.fleet), pools=pools)
            known = {field.name for field in fields(given.settings)}
            inner = {key: self._changes[key] for key in self._changes if key in known}
            outer = {key: self._changes[key] for key in self._changes if key not in known}
            return replace(given, settings=replace(given.settings, **inner), **outer)

        self.client.ask(make, self._applied)

    def _applied(self, result: Result) -> None:
        if isinstance(result, Refused):
            problems = "; ".join(each.message for each in result.problems)
            raise Violation("trial_failed", f"configuration refused: {result.message} {problems}")

    def ask(self, make: Callable[[str], AnyRequest]) -> list[Result]:
        """Ask for something; the list has the answer once it is there."""
        answers: list[Result] = []
        self.client.ask(make, answers.append)
        return answers

    def acquire(self, pool: str = "p", *, wait: str = "1h", **wishes: Any) -> Tenant:
        """Ask for a lease; the tenant keeps it until it is told otherwise."""
        tenant = Tenant(self, f"t{len(self.tenants) + 1}", pool, duration_ms(wait), wishes)
        self.tenants.append(tenant)
        return tenant

    def acquire_many(self, count: int, pool: str = "p", **wishes: Any) -> list[Tenant]:
        """Ask for several leases at once."""
        return [self.acquire(pool, **wishes) for _ in range(count)]

    def held(self, tenants: Sequence[Tenant] = ()) -> list[Tenant]:
        """Return the tenants who hold a lease now."""
        return [tenant for tenant in tenants or self.tenants if tenant.is_held]

    def all_held(self, tenants: Sequence[Tenant], *, within: str) -> int:
        """Wait until all of them have their lease."""
        return self.until(
            lambda: len(self.held(tenants)) == len(tenants), "all are served", within=within
        )

    def warm_up(self, count: int, pool: str = "p", *, within: str = "10m") -> None:
        """Wait until so many nodes are free."""
        self.until(lambda: len(self.free(pool)) >= count, f"{count} are warm", within=within)

    def drain(self, node_id: str, *, within: str, then_retire: bool = True) -> None:
        """Ask for a node to be emptied."""
        self.ask(
            lambda request_id: DrainNode(
                request_id=request_id,
                principal="operator",
                node_id=NodeId(node_id),
                deadline_ms=duration_ms(within),
                then_retire=then_retire,
            )
        )

    # -- what goes wrong ---------------------------------------------------------------------

    def crash(self, *, down: str = "1s", at: Boundary | None = None) -> None:
        """Kill the server, now or the next time that it comes by a boundary."""
        down_ms = duration_ms(down)
        self.server.plan = replace(self.server.plan, down_ms=(down_ms, down_ms))
        if at is None:
            self.server.crash("killed by the script")
        else:
            self.server.doomed_at = at

    def cut_off(self, node_id: str) -> None:
        """Put a partition between a machine and the server."""
        self.network.cut(self.machine_of(node_id).machine_id, is_upward=True, is_downward=True)

    def lease(self, lease_id: str) -> Lease | None:
        """Return a lease as it is committed."""
        return self.fleet.leases.get(lease_id)


def _changed(pool: Pool, changes: dict[str, Any]) -> Pool:
    """Return a pool with changes: of its own fields, or else of all its elastic tiers."""
    own = {key: value for key, value in changes.items() if key in Pool.__struct_fields__}
    rest = {key: value for key, value in changes.items() if key not in own}
    if "node_count_max" in own:
        rest["node_count_max"] = own.pop("node_count_max")
    tiers = tuple(replace(tier, **rest) if tier.offers else tier for tier in pool.tiers)
    return replace(pool, **own, **({} if "tiers" in own else {"tiers": tiers}))


def is_accepted(answers: Sequence[Result]) -> bool:
    """Say whether the answer is there and good."""
    return bool(answers) and isinstance(answers[0], Accepted)
