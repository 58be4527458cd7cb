"""Leasing against a model that is too simple to be wrong: it searches where the core has indexes.

Requests, releases, heartbeats, poison, cordons and lost nodes come in any order on a small fleet.
After each of them, and at every instant in between, both must agree on who holds which slot, who
waits, and how everybody else ended. That is: one holder a slot, caps kept, everybody served in
turn, nobody waiting who could be served, and every deadline to the millisecond.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.base.ids import NodeId
from hostler.core.inputs import (
    AgentSaidHello,
    CordonNode,
    FullScan,
    SilenceNoticed,
    UncordonNode,
)
from hostler.core.replies import Accepted
from hostler.model import Node
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import Health
from hostler.model.pool import Packing
from hostler.model.shape import Requirement, Shape
from hostler.testing.builders import a_fixed_tier, a_node, a_pool
from tests.core.leasing.rental import Rental

LINE_MAX = 4
LEASE_MS = 1_000
LINE_STEP_MS = 40
SHAPES = {"n-1": Shape(capacity=4), "n-3": Shape(capacity=12)}


@dataclass
class Wish:
    """What the model knows of one lease."""

    lease_id: str
    number: int
    key: str
    priority: int
    capacity: int
    affinity: str | None
    requested_at_ms: int
    deadline_at_ms: int
    phase: str = "waiting"
    node_id: str | None = None
    expires_at_ms: int = 0
    is_new: bool = True


@dataclass
class Model:
    """Leasing without indexes: every question is a search through everything."""

    slot_count: int
    cap: int | None
    packing: Packing = Packing.SPREAD
    wishes: dict[str, Wish] = field(default_factory=dict)

    def of(self, phase: str) -> list[Wish]:
        return [wish for wish in self.wishes.values() if wish.phase == phase]

    def on(self, node_id: str) -> list[Wish]:
        return [wish for wish in self.of("held") if wish.node_id == node_id]

    def tick(self, now_ms: int, nodes: dict[str, Node]) -> None:
        """Do what is due at an instant, given what the nodes are like."""
        for wish in self.of("held"):
            if nodes[wish.node_id or ""].health is Health.LOST:
                wish.phase = "node_lost"
            elif wish.expires_at_ms <= now_ms:
                wish.phase = "expired"
        self._time_out(now_ms - 1)
        while self._grant_one(now_ms, nodes):
            pass
        self._time_out(now_ms)
        for wish in sorted(self.of("waiting"), key=lambda wish: -wish.number):
            if wish.is_new and len(self.of("waiting")) > LINE_MAX:
                wish.phase = "overloaded"
            wish.is_new = False

    def _time_out(self, until_ms: int) -> None:
        for wish in self.of("waiting"):
            if wish.deadline_at_ms <= until_ms:
                wish.phase = "timed_out"

    def _turn(self, wish: Wish) -> tuple[int, int]:
        """A step forward for each of its priority, a step back for each node that its key holds."""
        held_count = len({held.node_id for held in self.of("held") if held.key == wish.key})
        steps = held_count - wish.priority
        return wish.requested_at_ms + steps * LINE_STEP_MS, wish.number

    def _grant_one(self, now_ms: int, nodes: dict[str, Node]) -> bool:
        for wish in sorted(self.of("waiting"), key=self._turn):
            own = {held.node_id for held in self.of("held") if held.key == wish.key}
            is_at_cap = self.cap is not None and len(own) >= self.cap
            fitting = [
                node_id
                for node_id, node in nodes.items()
                if node.takes_work
                and (node_id in own or not is_at_cap)
                and len(self.on(node_id)) < self.slot_count
                and (node.shape.capacity or 0) >= wish.capacity * self.slot_count
            ]
            if not fitting:
                continue
            is_packed = self.packing is Packing.PACK
            best = min(fitting, key=lambda each: (bool(self.on(each)) is not is_packed, each))
            best = min(fitting) if is_at_cap else best
            wish.node_id = wish.affinity if wish.affinity in fitting else best
            wish.phase = "held"
            wish.expires_at_ms = now_ms + LEASE_MS
            return True
        return False


class Pair:
    """The core and the model, side by side."""

    def __init__(self, slot_count: int, cap: int | None, packing: Packing) -> None:
        self.world = Rental(
            a_pool(
                tiers=(a_fixed_tier(),),
                slot_count=slot_count,
                packing=packing,
                lease_per_key_max=cap,
                lease_ms=LEASE_MS,
                waiting_count_max=LINE_MAX,
                line_step_ms=LINE_STEP_MS,
            ),
            *(
                a_node(node_id, slot_count=slot_count, shape=shape)
                for node_id, shape in SHAPES.items()
            ),
            suspect_after_ms=20,
            fence_after_ms=20,
            lost_after_ms=50,
        )
        self.model = Model(slot_count, cap, packing)
        self.world.run(FullScan())

    def follow(self) -> None:
        """Let the model do what is due now, and compare."""
        world, model = self.world, self.model
        model.tick(world.now_ms, world.fleet.nodes.rows)
        found = {key: told(world, key) for key in world.fleet.leases.rows}
        known = {
            key: (wish.phase, wish.node_id if wish.phase == "held" else None)
            for key, wish in model.wishes.items()
            if key in found
        }
        assert found == known

    def advance(self, by_ms: int) -> None:
        """Let the clock run, comparing at each instant at which anything may happen."""
        world = self.world
        to_ms = world.now_ms + by_ms
        while (at_ms := world.fleet.timers.next_at_ms()) is not None and at_ms <= to_ms:
            world.run(at_ms=max(at_ms, world.now_ms))
            self.follow()
        world.run(at_ms=to_ms)
        self.follow()

    # -- what may happen ---------------------------------------------------------------------

    def acquire(self, key: str, priority: int, capacity: int, timeout_ms: int, node: int) -> None:
        affinity = f"n-{node}" if node else None
        world = self.world
        name = f"a{len(self.model.wishes)}-{world.now_ms}-{len(world.deltas)}"
        world.run(
            world.request(
                name,
                fairness_key=key,
                priority=priority,
                requirement=Requirement(capacity=capacity),
                timeout_ms=timeout_ms,
                affinity_node_id=affinity,
            )
        )
        answer = world.replies[name]
        if isinstance(answer, Accepted):
            number = len(self.model.wishes)
            self.model.wishes[answer.subject_id] = Wish(
                answer.subject_id,
                number,
                key,
                priority,
                capacity,
                affinity,
                world.now_ms,
                world.now_ms + timeout_ms,
            )
        else:
            assert len(self.model.of("waiting")) >= LINE_MAX
        self.follow()

    def release(self, which: int, *, is_poison: bool) -> None:
        """End a lease that is held, or take one out of line."""
        live = [*self.model.of("held"), *self.model.of("waiting")]
        if not live:
            return
        wish = live[which % len(live)]
        lease = self.world.fleet.leases[wish.lease_id]
        outcome = LeaseOutcome.POISON if is_poison else LeaseOutcome.HEALTHY
        was_held = wish.phase == "held"
        wish.phase = outcome.value if was_held else "cancelled"
        self.world.release(lease, outcome)
        if was_held and is_poison:
            assert self.world.node_of(lease).cordon is not None
        self.follow()

    def heartbeat(self, which: int) -> None:
        held = self.model.of("held")
        if held:
            wish = held[which % len(held)]
            self.world.heartbeat(self.world.fleet.leases[wish.lease_id])
            wish.expires_at_ms = self.world.now_ms + LEASE_MS
            self.follow()

    def cordon(self, node: int) -> None:
        self.world.ask(CordonNode, node_id=f"n-{node}")
        self.follow()

    def uncordon(self, node: int) -> None:
        self.world.ask(UncordonNode, node_id=f"n-{node}")
        self.follow()

    def silence(self, node: int) -> None:
        self.world.run(SilenceNoticed(node_id=NodeId(f"n-{node}"), since_at_ms=self.world.now_ms))
        self.follow()

    def hello(self, node: int) -> None:
        node_id = NodeId(f"n-{node}")
        self.world.run(AgentSaidHello(node_id=node_id, incarnation=1, shape=SHAPES[node_id]))
        self.follow()


def told(world: Rental, lease_id: str) -> tuple[str, str | None]:
    """Return what the core says of a lease, in the model's words."""
    lease = world.fleet.leases[lease_id]
    match lease.phase:
        case LeasePhase.HELD:
            return "held", lease.node_id
        case LeasePhase.WAITING:
            return "waiting", None
        case LeasePhase.SETTLED:
            assert lease.outcome is not None
            return lease.outcome.value, None
        case LeasePhase.REFUSED:
            assert lease.reason is not None
            return lease.reason.value, None


def happening(name: str, *arguments: st.SearchStrategy[Any], **named: Any) -> Any:
    """Return a strategy of one kind of thing that may happen."""
    return st.tuples(*arguments).map(
        lambda drawn: (name, drawn, named),
    )


numbers = st.integers(min_value=0, max_value=9)
nodes = st.sampled_from([1, 3])
acquiring = happening(
    "acquire",
    st.sampled_from(["a", "a", "b", "c"]),
    st.sampled_from([0, 0, 1]),
    st.sampled_from([0, 0, 0, 5]),
    st.sampled_from([0, 40, 4_000, 4_000]),
    st.sampled_from([0, 0, 1, 3]),
)
KINDS = [
    *[acquiring] * 8,
    *[happening("release", numbers, is_poison=False)] * 6,
    happening("release", numbers, is_poison=True),
    happening("heartbeat", numbers),
    happening("cordon", nodes),
    *[happening("uncordon", nodes)] * 3,
    happening("silence", nodes),
    *[happening("hello", nodes)] * 2,
    *[happening("advance", st.sampled_from([0, 1, 30, 100, 900]))] * 2,
    happening("advance", st.just(40_000)),
]
# `one_of` would count each kind once.
happenings = st.sampled_from(range(len(KINDS))).flatmap(KINDS.__getitem__)


@pytest.mark.slow
@settings(max_examples=100)
@given(
    st.sampled_from([1, 2]),
    st.sampled_from([None, 2]),
    st.sampled_from(Packing),
    st.lists(happenings, min_size=20, max_size=60),
)
def test_the_core_leases_as_a_plain_search_would(
    slot_count: int, cap: int | None, packing: Packing, story: list[Any]
) -> None:
    pair = Pair(slot_count, cap, packing)
    for name, arguments, named in story:
        getattr(pair, name)(*arguments, **named)
    pair.world.check_calm()
