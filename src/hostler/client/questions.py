"""What can be asked of a server about itself and its fleet, without changing anything."""

from __future__ import annotations

from collections.abc import Sequence

from hostler.client import calls
from hostler.client.history import History
from hostler.client.paging import PAGE_COUNT
from hostler.wire.http import (
    BudgetLineView,
    ConfigView,
    ExplainView,
    MaintenanceView,
    PendingView,
    ServiceView,
    SpendView,
    StatusView,
    WindowComingView,
)


class Questions(History):
    """The questions of a client."""

    async def status(self) -> StatusView:
        """Return the server and the fleet in numbers."""
        return await self._transport.send(calls.status())

    async def config(self) -> ConfigView:
        """Return the configuration in force."""
        return await self._transport.send(calls.config())

    async def explain(
        self,
        about: str,
        *,
        node: str | None = None,
        at_event: int | None = None,
        at_revision: int | None = None,
        given: Sequence[str] = (),
    ) -> ExplainView:
        """Return why something is as it is: the id of a replica, node, lease, bundle, pool, ...

        Args:
            about: The id.
            node: Of a replica: also tell all about this node for it.
            at_event: Of a replica: make the decision of the step that told this event again.
            at_revision: The same, of the step that brought this revision about.
            given: Of a replica: decide also with these facts altered, such as `uncordon=n-000001`.
        """
        return await self._transport.send(
            calls.explain(about, node, at_event=at_event, at_revision=at_revision, given=given)
        )

    async def maintenance(self) -> list[MaintenanceView]:
        """Return when the machines of which nodes are worked on, the soonest first."""
        return (await self._transport.send(calls.maintenance())).items

    async def windows(self, *, pool: str | None = None) -> list[WindowComingView]:
        """Return what the windows of pools, or of one, bring in the next two weeks."""
        return (await self._transport.send(calls.windows(pool=pool))).items

    async def services(self) -> list[ServiceView]:
        """Return all node services."""
        return (await self._transport.send(calls.services())).items

    async def service(self, name: str) -> ServiceView:
        """Return one node service, with its nodes."""
        return await self._transport.send(calls.service(name))

    async def pending(self) -> PendingView:
        """Return what waits, grouped by what it asks for and what it waits for."""
        return await self._transport.send(calls.pending())

    async def spend(
        self,
        *,
        by: str = "pool",
        since: str | None = None,
        until: str | None = None,
        pool: str | None = None,
    ) -> list[SpendView]:
        """Return what was used, up to now.

        Args:
            by: Any of pool, tier, offer, key, bundle, day, month or fleet, with commas.
            since: First day, `2026-11-01`.
            until: Last day.
            pool: Only of this pool.
        """
        return await self._all(
            lambda cursor: calls.spend(
                limit=PAGE_COUNT, cursor=cursor, by=by, since=since, until=until, pool=pool
            )
        )

    async def budgets(self) -> list[BudgetLineView]:
        """Return what budgets have left, a line for each quantity that is bounded."""
        return await self._all(lambda cursor: calls.budgets(limit=PAGE_COUNT, cursor=cursor))
