"""What can be asked about: each kind with its names, how it is fetched, and how its table reads."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import Column
from hostler.cli.tables import (
    ALLOCATION_COLUMNS,
    BUNDLE_COLUMNS,
    LEASE_COLUMNS,
    MAINTENANCE_COLUMNS,
    NODE_COLUMNS,
    POOL_COLUMNS,
    REPLICA_COLUMNS,
    SERVICE_COLUMNS,
    STUCK_COLUMNS,
    TOKEN_COLUMNS,
    WAITING_COLUMNS,
    WINDOW_COLUMNS,
)

if TYPE_CHECKING:
    from hostler.client import SyncClient
    from hostler.wire.http import (
        AllocationView,
        BundleView,
        LeaseView,
        MaintenanceView,
        NodeView,
        PoolView,
        ReplicaView,
        ServiceView,
        TokenView,
        WindowComingView,
    )

V = TypeVar("V")


@dataclass(frozen=True)
class Filters:
    """What narrows a list; not every kind knows every one."""

    is_wide: bool = False
    """What costs more to find out is wanted, too."""
    bundle: str | None = None
    node: str | None = None
    pool: str | None = None
    is_all: bool = False
    """Also what is over: retired nodes, ended allocations, settled leases."""


@dataclass(frozen=True)
class Kind(Generic[V]):
    """One kind of thing.

    Attributes:
        noun: Singular, as events name it.
        plural: As people ask for a list.
        short: Abbreviations.
        listed: Fetches a list.
        fetched: Fetches one by its id; `None` where the API has no such call.
        id_of: The id of one.
        columns: Of its table.
        filters: Names of those `Filters` that its list knows.
    """

    noun: str
    plural: str
    short: tuple[str, ...]
    listed: Callable[[SyncClient, Filters], Sequence[V]]
    fetched: Callable[[SyncClient, str], V] | None
    id_of: Callable[[V], str]
    columns: Sequence[Column[V]]
    filters: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that people may call it."""
        return (self.plural, self.noun, *self.short)

    def find(self, client: SyncClient, thing_id: str) -> V | None:
        """Return one by its id, or `None` when there is none."""
        from hostler.client import ClientError

        if self.fetched is None:
            found = self.listed(client, Filters(is_all=True))
            return next((one for one in found if self.id_of(one) == thing_id), None)
        try:
            return self.fetched(client, thing_id)
        except ClientError as error:
            if error.status == 404:
                return None
            raise

    def fetch(self, client: SyncClient, thing_id: str) -> V:
        """Return one by its id.

        Raises:
            CommandError: There is none; the message names near ids.
        """
        found = self.find(client, thing_id)
        if found is None:
            known = [self.id_of(one) for one in self.listed(client, Filters(is_all=True))]
            raise not_found(self.noun, thing_id, known)
        return found


def _replicas(client: SyncClient, filters: Filters) -> Sequence[ReplicaView]:
    return client.replicas(bundle=filters.bundle)


def _allocations(client: SyncClient, filters: Filters) -> Sequence[AllocationView]:
    return client.allocations(
        bundle=filters.bundle, node=filters.node, include_ended=filters.is_all
    )


def _nodes(client: SyncClient, filters: Filters) -> Sequence[NodeView]:
    return client.nodes(pool=filters.pool, include_retired=filters.is_all)


def _waiting(client: SyncClient, filters: Filters) -> Sequence[LeaseView]:
    found = client.leases(pool=filters.pool, phase="waiting")
    return sorted(found, key=lambda view: (view.pool, view.position or 0))


def _leases(client: SyncClient, filters: Filters) -> Sequence[LeaseView]:
    return client.leases(pool=filters.pool, include_ended=filters.is_all)


BUNDLES: Final[Kind[BundleView]] = Kind(
    noun="bundle",
    plural="bundles",
    short=("b",),
    listed=lambda client, filters: client.bundles(protection=filters.is_wide),
    fetched=lambda client, bundle_id: client.bundle(bundle_id),
    id_of=lambda view: view.bundle_id,
    columns=BUNDLE_COLUMNS,
)
REPLICAS: Final[Kind[ReplicaView]] = Kind(
    noun="replica",
    plural="replicas",
    short=("r",),
    listed=_replicas,
    fetched=lambda client, replica_id: client.replica(replica_id),
    id_of=lambda view: view.replica_id,
    columns=REPLICA_COLUMNS,
    filters=("bundle",),
)
ALLOCATIONS: Final[Kind[AllocationView]] = Kind(
    noun="allocation",
    plural="allocations",
    short=("alloc", "allocs", "a"),
    listed=_allocations,
    fetched=lambda client, allocation_id: client.allocation(allocation_id),
    id_of=lambda view: view.allocation_id,
    columns=ALLOCATION_COLUMNS,
    filters=("bundle", "node", "is_all"),
)
NODES: Final[Kind[NodeView]] = Kind(
    noun="node",
    plural="nodes",
    short=("n",),
    listed=_nodes,
    fetched=lambda client, node_id: client.node(node_id),
    id_of=lambda view: view.node_id,
    columns=NODE_COLUMNS,
    filters=("pool", "is_all"),
)
POOLS: Final[Kind[PoolView]] = Kind(
    noun="pool",
    plural="pools",
    short=("p",),
    listed=lambda client, _: client.pools(),
    fetched=lambda client, name: client.pool(name),
    id_of=lambda view: view.name,
    columns=POOL_COLUMNS,
)
LEASES: Final[Kind[LeaseView]] = Kind(
    noun="lease",
    plural="leases",
    short=("l",),
    listed=_leases,
    fetched=lambda client, lease_id: client.lease_view(lease_id),
    id_of=lambda view: view.lease_id,
    columns=LEASE_COLUMNS,
    filters=("pool", "is_all"),
)
WAITING: Final[Kind[LeaseView]] = Kind(
    noun="waiting-lease",
    plural="waiting",
    short=("line",),
    listed=_waiting,
    fetched=None,
    id_of=lambda view: view.lease_id,
    columns=WAITING_COLUMNS,
    filters=("pool",),
)
TOKENS: Final[Kind[TokenView]] = Kind(
    noun="token",
    plural="tokens",
    short=("t",),
    listed=lambda client, _: client.tokens(),
    fetched=None,
    id_of=lambda view: view.token_id,
    columns=TOKEN_COLUMNS,
)

SERVICES: Final[Kind[ServiceView]] = Kind(
    noun="service",
    plural="services",
    short=("svc",),
    listed=lambda client, _: client.services(),
    fetched=lambda client, name: client.service(name),
    id_of=lambda view: view.name,
    columns=SERVICE_COLUMNS,
)

WINDOWS: Final[Kind[WindowComingView]] = Kind(
    noun="schedule",
    plural="schedules",
    short=("windows", "window"),
    listed=lambda client, filters: client.windows(pool=filters.pool),
    fetched=None,
    id_of=lambda view: f"{view.pool}/{view.window or 'gap'}/{view.from_at_ms}",
    columns=WINDOW_COLUMNS,
    filters=("pool",),
)

MAINTENANCE: Final[Kind[MaintenanceView]] = Kind(
    noun="maintenance",
    plural="maintenance",
    short=(),
    listed=lambda client, _: client.maintenance(),
    fetched=None,
    id_of=lambda view: view.name,
    columns=MAINTENANCE_COLUMNS,
)

STUCK: Final[Kind[NodeView]] = Kind(
    noun="stuck-node",
    plural="stuck",
    short=(),
    listed=lambda client, filters: [
        view
        for view in client.nodes(pool=filters.pool, phase="stopping")
        if view.stop is not None and (view.stop.is_stuck or view.stop.is_foreign)
    ],
    fetched=None,
    id_of=lambda view: view.node_id,
    columns=STUCK_COLUMNS,
    filters=("pool",),
)

KINDS: Final[tuple[Kind[Any], ...]] = (
    BUNDLES,
    REPLICAS,
    ALLOCATIONS,
    NODES,
    POOLS,
    LEASES,
    WAITING,
    TOKENS,
    SERVICES,
    WINDOWS,
    MAINTENANCE,
    STUCK,
)
KIND_BY_NAME: Final[dict[str, Kind[Any]]] = {name: kind for kind in KINDS for name in kind.names}

KINDS_TOLD: Final = ", ".join(
    [kind.plural for kind in KINDS] + ["upcoming", "spend", "events", "audit"]
)


def kind_named(name: str) -> Kind[Any]:
    """Find a kind by any of its names.

    Raises:
        CommandError: There is none.
    """
    kind = KIND_BY_NAME.get(name.lower())
    if kind is None:
        near = difflib.get_close_matches(name.lower(), KIND_BY_NAME, n=1)
        did_you = f"did you mean {KIND_BY_NAME[near[0]].plural}? " if near else ""
        raise CommandError(
            f"there is no kind of thing called {name}",
            code=ExitCode.BAD_INPUT,
            hint=f"{did_you}there are {KINDS_TOLD}",
        )
    return kind


def kind_and_id(kind: str, thing_id: str | None) -> tuple[Kind[Any], str | None]:
    """Take `node n-000001` and `node/n-000001` (as `-o name` prints it) alike."""
    noun, slash, rest = kind.partition("/")
    if slash and thing_id is None and noun in KIND_BY_NAME:
        return kind_named(noun), rest
    return kind_named(kind), thing_id


def not_found(noun: str, thing_id: str, known: Sequence[str]) -> CommandError:
    """Say that there is nothing of an id, and which ids are near."""
    near = difflib.get_close_matches(thing_id, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else ""
    if not near and noun in KIND_BY_NAME:
        hint = f"`hostler get {KIND_BY_NAME[noun].plural}` lists them all"
    return CommandError(f"there is no {noun} {thing_id}", code=ExitCode.NOT_FOUND, hint=hint)
