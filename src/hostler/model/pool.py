"""A pool: nodes under one policy, with tiers in cost order and offers that can be launched."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from hostler.model.calendar import Window
from hostler.model.consolidation import ConsolidationPolicy
from hostler.model.ready import ReadyCheck
from hostler.model.record import Record, Value
from hostler.model.shape import Shape


class TierKind(StrEnum):
    """Whether a tier can launch machines or uses only what exists."""

    ELASTIC = "elastic"
    FIXED = "fixed"


class Reliability(StrEnum):
    """Whether the provider may take a machine back."""

    RELIABLE = "reliable"
    INTERRUPTIBLE = "interruptible"


class Band(StrEnum):
    """Recovery class: how hard we try after a failure. Gold comes first everywhere."""

    GOLD = "gold"
    SILVER = "silver"
    BRONZE = "bronze"

    @property
    def rank(self) -> int:
        """Zero for gold; lower goes first."""
        return _RANKS[self]


_RANKS = {Band.GOLD: 0, Band.SILVER: 1, Band.BRONZE: 2}


class LaunchMode(StrEnum):
    """On what terms a machine is had."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    """The provider may take it back."""
    RESERVED = "reserved"
    """Paid for whether it runs or not; give the offer the price of running it, and its count."""


class Reuse(StrEnum):
    """How far existing nodes are looked for before a machine is launched."""

    TIER = "tier"
    """In the tier itself: a new machine of a cheaper tier goes before a node of a dearer one."""
    POOL = "pool"
    """In all tiers of the pool: a machine is launched only when no node of the pool has room."""


class Packing(StrEnum):
    """Which of several nodes with a free slot a lease gets."""

    SPREAD = "spread"
    """One that is idle, while there is any: every lease has as much of a machine as can be."""
    PACK = "pack"
    """One that is partly filled: machines fill up, and those that nobody needs stand idle and
    go."""


class Offer(Value, frozen=True, kw_only=True):
    """One kind of machine that a tier can launch."""

    name: str
    """The provider's type name, or the operator's name of a declared shape."""
    shape: Shape
    price_microusd_per_hour: int = 0
    mode: LaunchMode = LaunchMode.ON_DEMAND
    node_count_max: int | None = None
    """Machines of this offer at once; `None`: as many as its tier may have."""
    provided: tuple[str, ...] = ()
    """Capabilities in its shape that are there only when node services have come up."""


class Tier(Value, frozen=True, kw_only=True):
    """One source of capacity of a pool."""

    name: str
    kind: TierKind
    provider: str = ""
    """Who launches and confirms machines. A fixed tier may have none: agents join by themselves."""
    has_agents: bool = True
    """False: its provider's machines run no agent of ours, so they take leases and no jobs."""
    reliability: Reliability = Reliability.RELIABLE
    offers: tuple[Offer, ...] = ()
    """Cheapest first; empty in a fixed tier."""
    node_count_max: int = 0
    """Machines at once, from asked for until confirmed gone. Elastic tiers must have it."""
    zone: str = ""
    labels: dict[str, str] = {}
    """Of each of its nodes, for rules about where work may be."""
    lead_ms: int | None = None
    """How long ahead of its start a timetable wants a place here; `None`: as usual for its kind."""
    boot_ms: int = 120_000
    """Longest time from the launch to the agent's hello."""
    options_json: str = "{}"
    """The provider's own options, checked by the provider when the configuration is."""
    price_microusd_per_hour: int = 0
    """Of each machine that joins a fixed tier; an elastic tier's offers have their own."""

    def reliability_of(self, offer: Offer) -> Reliability:
        """Return whether the provider may take back a machine of an offer."""
        return Reliability.INTERRUPTIBLE if offer.mode is LaunchMode.SPOT else self.reliability


class SpareTarget(Value, frozen=True, kw_only=True):
    """How many idle nodes to keep for the recoveries of a band."""

    count: int
    band: Band | None = None
    """The only one that may recover onto them; `None`: gold and silver."""


class SizeWindow(Value, frozen=True, kw_only=True):
    """A stretch of the week in which a pool has other sizes. `None`: as the pool has it."""

    name: str
    window: Window
    warm_count: int | None = None
    node_count_min: int | None = None
    node_count_max: int | None = None


class Rollout(Value, frozen=True, kw_only=True):
    """How fast machines are replaced that another configuration made, or that are old."""

    surge_count_max: int = 1
    """Machines more than the floors, so that a new one is there before an old one goes."""
    unavailable_count_max: int = 0
    """Machines that the floors may lack meanwhile."""


class Closing(Value, frozen=True, kw_only=True):
    """How far a disabled pool is on its way to hold nothing and have no machine."""

    begun_at_ms: int
    deadline_at_ms: int
    """Until then leases may stay and work may move; then what is left is ended."""
    is_done: bool = False
    """Nothing is held and no machine of ours is left; it has been said once."""


class Pool(Record, frozen=True, kw_only=True):
    """Nodes managed under one policy."""

    KIND: ClassVar[str] = "pool"

    name: str
    generation: int = 1
    is_enabled: bool = True
    """False: no new work, waiting requests are refused, machines retire when they are empty."""
    closing: Closing | None = None
    """While it is disabled."""
    is_configured: bool = True
    """False: it has left the configuration; its record goes when its last node has."""
    tiers: tuple[Tier, ...] = ()
    reuse: Reuse = Reuse.TIER
    node_count_max: int | None = None
    """Machines of all elastic tiers together; `None`: as many as these may have."""
    warm_count: int = 0
    """Ready and idle nodes to keep for leases, whatever is held (desired idle)."""
    node_count_min: int = 0
    """Nodes that may be used to keep in all, held and idle."""
    windows: tuple[SizeWindow, ...] = ()
    """Where two hold at once, the first one that sets a number has its way."""
    rollout: Rollout = Rollout()
    consolidation: ConsolidationPolicy | None = None
    """When nodes that are little used are emptied; `None`: never."""
    age_ms_max: int | None = None
    """An elastic node is replaced when it has been there for this long, or up to a tenth less, so
    that what was launched together does not go together."""
    boot_failure_count_max: int = 5
    """Machines of a tier in a row that may fail to boot; then no more are launched there."""
    ready: ReadyCheck | None = None
    """What a new node must pass before work is put on it; `None`: its agent's report is enough."""
    spares: tuple[SpareTarget, ...] = ()
    """Idle nodes to keep for recovery; new work does not get them. At most one target a band, in
    the order in which they are filled."""
    slot_count: int = 1
    """Leases that one node may hold at once."""
    packing: Packing = Packing.SPREAD
    """Which node a lease gets, where nodes have several slots."""
    idle_ms: int = 300_000
    """How long an elastic node may stand idle beyond what warm and spare need."""
    lease_ms: int = 600_000
    """A lease ends this long after its last heartbeat (spec/leasing appendix 12: 10 min)."""
    lease_ms_max: int | None = None
    """A lease ends this long after its grant, heartbeats or not."""
    clean_up: tuple[str, ...] = ()
    """What an agent runs in a slot after a lease and before the next, as an argument vector."""
    clean_up_ms: int = 60_000
    """How long that may take."""
    retire_notice_ms: int = 600_000
    """How long leases may stay on a node that is to retire, where no drain says otherwise."""
    retire_extension_ms_max: int = 0
    """How much longer a holder may stay who asks for it, also past the deadline of a drain."""
    lease_per_key_max: int | None = None
    """Fairness: nodes that the leases of one key may be on at once. One more lease on a node that
    the key holds already costs nothing."""
    line_step_ms: int = 60_000
    """Time in line that one step of priority is worth, and that each node which a key holds already
    costs it. So keys take turns, and nobody starves."""
    waiting_count_max: int = 1_000
    """Length of the waiting line; the next request is refused as overloaded."""
    use_count_max: int | None = None
    """Leases that a node serves before it is replaced; 1 makes it single-use."""
    launch_count_max: int = 5
    """Launches in flight at once (appendix 12: growth concurrency 5)."""

    @property
    def key(self) -> str:
        """The pool's name."""
        return self.name

    @property
    def spare_count(self) -> int:
        """Idle nodes to keep for recovery in all."""
        return sum(target.count for target in self.spares)

    def tier(self, name: str) -> Tier | None:
        """Return the tier of that name, or `None`."""
        return next((tier for tier in self.tiers if tier.name == name), None)
