"""`hostler.yaml`: the fleet's numbers, where the server listens, and the pools."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from hostler.wire.documents.consolidation import ConsolidationDocument
from hostler.wire.documents.disruption import FleetDisruptionBudgetDocument
from hostler.wire.documents.maintenance import MaintenanceDocument
from hostler.wire.documents.ready import ReadyDocument
from hostler.wire.documents.services import ServiceDocument
from hostler.wire.documents.spend import BudgetDocument, SpendDocument
from hostler.wire.documents.text import Count, CountFromOne, Duration, Money, Name
from hostler.wire.documents.where import Labels
from hostler.wire.documents.windows import WindowDocument
from hostler.wire.documents.work import Document, ShapeDocument

PORT_DEFAULT: Final = 7464
"""Where a server listens and a client looks unless told otherwise."""


class TimingDocument(Document, frozen=True, kw_only=True):
    """When silence begins to matter."""

    heartbeat: Duration = "5s"
    """How often an agent says that it lives."""
    suspect_after: Duration = "15s"
    """Silence after which a node takes no new work."""
    fence_after: Duration = "35s"
    """Silence after which an agent stops its own work."""
    lost_after: Duration = "60s"
    """Silence after which work is placed elsewhere."""
    list_every: Duration = "60s"
    """How often each provider is asked for all our machines."""
    orphan_grace: Duration = "2m"
    """Age below which an unknown machine of ours may still be a launch in flight."""
    lost_nodes_max: CountFromOne = 20
    """Brake: more nodes lost inside `brake_window` hold back further recoveries."""
    lost_percent_max: Annotated[int, Meta(ge=1, le=100)] | None = None
    """The same in percent of the nodes that are there, one at least; the lower of both holds."""
    brake_window: Duration = "5m"


class RecoveryDocument(Document, frozen=True, kw_only=True):
    """How hard and how often we try after failures."""

    restarts_max: Count = 6
    """Recoveries of one replica inside the window; one more breaks the bundle."""
    bundle_restarts_max: Count = 50
    """Crashes of all replicas of one bundle inside the window; one more breaks the bundle."""
    restart_window: Duration = "1h"
    spacing: Duration = "5s"
    """Least time between two recoveries of one replica."""
    healthy_after: Duration = "10m"
    """Being ready for so long erases a replica's restart history."""
    exclusion: Duration = "30s"
    """How long a replica avoids the node on which it failed."""


class QuarantineDocument(Document, frozen=True, kw_only=True):
    """When a node takes no new jobs because it refused some, or was lost and came back."""

    rejections_max: Count = 3
    """Refusals of a node inside the window that make it be left alone."""
    rejection_window: Duration = "5s"
    pause: Duration = "30s"
    """The first time; each time in a row is twice as long. Then it gets one job on trial."""
    pause_max: Duration = "1h"
    forget: Duration = "1h"
    """Being trusted for so long ends the row."""


class DebtsDocument(Document, frozen=True, kw_only=True):
    """When a replica whose place breaks a preferred rule is moved to a better one."""

    settle: Duration = "10m"
    """How long a better place must have been there."""
    spacing: Duration = "30m"
    """Pause of a replica after such a move, doubling with each further one within a day."""


class PreemptionDocument(Document, frozen=True, kw_only=True):
    """When a replica that fits nowhere may have lower work end, and how much of it."""

    bands: tuple[Literal["gold", "silver"], ...] = ("gold", "silver")
    """Who may, at the cost of bands below its own; an empty list: nobody ever gives way."""
    after: Duration = "0s"
    """How long it must have waited before."""
    window: Duration = "10m"
    """Over which victims are counted, and for which a victim is left alone afterwards."""
    victims_max: Count = 100
    """Victims in the whole fleet within the window."""
    victims_per_bundle_max: Count = 10
    """Victims of one bundle within the window."""
    bronze_victims: Literal["wait", "drop"] = "wait"
    """What becomes of bronze that gave way: it waits for room, or it is dropped."""


class PlacementDocument(Document, frozen=True, kw_only=True):
    """In what order those who wait are served, and when one makes room for another."""

    ageing: Duration = "1h"
    """A replica goes before one of the band above that has waited so much less; 0s: never."""
    preemption: PreemptionDocument = PreemptionDocument()


class RetentionDocument(Document, frozen=True, kw_only=True):
    """How much history is kept."""

    events_max: CountFromOne = 100_000
    journal_max: CountFromOne = 20_000
    ended: Duration = "15m"
    """How long ended allocations, settled leases and retired nodes can be asked about."""
    decisions_max: CountFromOne = 10
    """Placement decisions kept per replica."""
    life_max: CountFromOne = 200
    """Events kept in the life of one node, replica, bundle or pool, whatever else happens."""
    lives_max: CountFromOne = 200_000
    """The same of all lives together."""
    audit: Duration = "90d"
    """How long the audit goes back."""
    audit_max: CountFromOne = 20_000
    """Changes that it holds at most; refusals are kept apart, a tenth as many."""


class ProviderDocument(Document, frozen=True, kw_only=True):
    """How much one provider is asked for at once, by all pools together."""

    launches_max: CountFromOne | None = None
    """Launches in flight at once."""
    launches_per_minute_max: CountFromOne | None = None
    """Launches are spaced so that a minute has no more."""


class FleetDocument(Document, frozen=True, kw_only=True):
    """The numbers that policy is tuned with."""

    id: Name | None = None
    """The label by which our machines are known; made up when left out. Never changes."""
    timing: TimingDocument = TimingDocument()
    providers: dict[str, ProviderDocument] = {}
    """Limits by provider; one that is not named has none."""
    placement: PlacementDocument = PlacementDocument()
    disruption_budgets: list[FleetDisruptionBudgetDocument] = []
    """Bounds on moving what runs well; counted over all that each selects."""
    maintenance: list[MaintenanceDocument] = []
    """When the machines of which nodes are worked on."""
    recovery: RecoveryDocument = RecoveryDocument()
    quarantine: QuarantineDocument = QuarantineDocument()
    debts: DebtsDocument = DebtsDocument()
    retention: RetentionDocument = RetentionDocument()
    spend: SpendDocument = SpendDocument()


class TlsDocument(Document, frozen=True, kw_only=True):
    """The server's certificate, as PEM files."""

    cert: str
    key: str


class ServerDocument(Document, frozen=True, kw_only=True):
    """Where the server listens and where it keeps its files."""

    bind: str = "127.0.0.1"
    """Address to listen on. Anything but loopback needs `tls` and tokens."""
    port: Annotated[int, Meta(ge=0, le=65_535)] = PORT_DEFAULT
    """0 takes any free port and says which."""
    data: str = "hostler-data"
    """Folder of the database and the key, made when it is missing; relative to this file."""
    tls: TlsDocument | None = None


class OfferDocument(Document, frozen=True, kw_only=True):
    """One kind of machine that a tier can launch."""

    name: Name
    shape: ShapeDocument = ShapeDocument()
    price_per_hour: Money = "0"
    mode: Literal["on_demand", "spot", "reserved"] = "on_demand"
    """On what terms it is had. `spot`: the provider may take it back. `reserved`: it is paid for
    anyway, so price what running it costs more, and say how many there are."""
    node_count_max: CountFromOne | None = None
    """Machines of this offer at once; left out: as many as the tier may have."""


class TierDocument(Document, frozen=True, kw_only=True):
    """One source of capacity of a pool."""

    name: Name
    kind: Literal["elastic", "fixed"]
    """`elastic` can launch machines; `fixed` uses only what exists."""
    provider: str = ""
    """Who launches and confirms machines; a fixed tier may have none."""
    reliability: Literal["reliable", "interruptible"] = "reliable"
    """`interruptible`: the provider may take a machine back."""
    zone: str = ""
    labels: Labels = {}
    """Of each of its nodes, for the rules of bundles about where they may be."""
    node_count_max: CountFromOne | None = None
    """Machines at once, from asked for until confirmed gone. Elastic tiers must have it."""
    lead: Duration | None = None
    """How long ahead of its start a timetable wants a place here; left out: 15s where machines are
    there, 3m where they must be launched."""
    boot: Duration = "2m"
    """Longest time until a launch is answered, and from its answer to the agent's hello."""
    offers: list[OfferDocument] = []
    """Cheapest first; elastic tiers must have one."""
    options: dict[str, Any] = {}
    """The provider's own options."""
    price_per_hour: Money = "0"
    """Of each machine of a fixed tier; the offers of an elastic one have their own."""


class SparesDocument(Document, frozen=True, kw_only=True):
    """Idle nodes that are kept for recovery."""

    count: Count
    band: Literal["gold", "silver"] | None = None
    """The only band that may recover onto them; left out: gold and silver."""


class RolloutDocument(Document, frozen=True, kw_only=True):
    """How fast machines are replaced that are out of date or old."""

    surge: Count = 1
    """Machines more than are to be idle, so that a new one is there before an old one goes."""
    unavailable: Count = 0
    """Idle machines that may be missing meanwhile."""


class PoolDocument(Document, frozen=True, kw_only=True):
    """Nodes under one policy."""

    tiers: list[TierDocument]
    """In cost order, cheapest first."""
    reuse: Literal["tier", "pool"] = "tier"
    """How far existing nodes are looked for before a machine is launched: `tier` lets a new machine
    of a cheaper tier go before a node of a dearer one, `pool` does not."""
    node_count_max: CountFromOne | None = None
    """Machines of all elastic tiers together; left out: as many as these may have."""
    warm: Count = 0
    """Ready and idle nodes to keep for leases."""
    min: Count = 0
    """Nodes that may be used to keep in all, held and idle."""
    windows: list[WindowDocument] = []
    """Stretches of the week with other sizes; of two at once the first that sets one counts."""
    enabled: bool = True
    """false: no new work, and machines go when they are empty; true again calls that off."""
    rollout: RolloutDocument = RolloutDocument()
    consolidation: ConsolidationDocument | None = None
    """When little used machines are emptied so that they can go; left out: never."""
    age_max: Duration | None = None
    """An elastic node is replaced at this age, or up to a tenth earlier."""
    boot_failures_max: CountFromOne = 5
    """Machines of a tier that may fail to boot in a row; then it launches no more."""
    ready: ReadyDocument | None = None
    """What a new node must pass before work is put on it; left out: nothing."""
    spares: SparesDocument | list[SparesDocument] | None = None
    """One target, or a list of them, one for each band. Gold's are filled first."""
    slots: CountFromOne = 1
    """Leases that one node may hold at once."""
    packing: Literal["spread", "pack"] = "spread"
    """Which node a lease gets, where nodes have several slots: `spread` takes an idle one while
    there is any, `pack` fills those up that are in use."""
    idle: Duration = "5m"
    """How long an elastic node may stand idle beyond what warm and spares need."""
    lease: Duration = "10m"
    """A lease ends so long after its last heartbeat."""
    lease_max: Duration | None = None
    """A lease ends so long after its grant, heartbeats or not."""
    clean_up: list[Annotated[str, Meta(min_length=1)]] = []
    """What the agent runs in a slot after a lease and before the next, as an argument vector. If it
    fails, the node is held no more: a launched one is replaced, one of ours is cordoned."""
    clean_up_timeout: Duration = "1m"
    """How long that may take."""
    retire_notice: Duration = "10m"
    """How long leases may stay on a node that is to retire, where no drain says otherwise."""
    retire_extension_max: Duration | None = None
    """How much longer a holder may stay who asks for it, also past the deadline of a drain."""
    leases_per_key_max: CountFromOne | None = None
    """Nodes that the leases of one fairness key may be on at once. One more lease on a node that
    the key holds already costs nothing."""
    line_step: Duration = "1m"
    """Time in line that one step of priority is worth, and that each node which a key holds already
    costs it."""
    waiting_max: Count = 1_000
    """Length of the waiting line."""
    uses_max: CountFromOne | None = None
    """Leases that a node serves before it is replaced; 1 makes it single-use."""
    launches_max: CountFromOne = 5
    """Launches in flight at once."""


class ConfigDocument(Document, frozen=True, kw_only=True):
    """The whole file."""

    fleet: FleetDocument = FleetDocument()
    server: ServerDocument = ServerDocument()
    pools: dict[Name, PoolDocument] = {}
    services: dict[Name, ServiceDocument] = {}
    """Node services: jobs that run once on each node of some pools."""
    budgets: dict[Name, BudgetDocument] = {}
    """How far spend may go."""
