"""What can be asked of a server about itself and its fleet, without changing anything."""

from __future__ import annotations

from collections.abc import Sequence

from hostler.client import calls
from hostler.client.transport import Transport
from hostler.wire.http import (
    ConfigView,
    ExplainView,
    PendingView,
    StatusView,
    WindowComingView,
)


class Questions:
    """The questions of a client."""

    _transport: Transport

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

    async def windows(self, *, pool: str | None = None) -> list[WindowComingView]:
        """Return what the windows of pools, or of one, bring in the next two weeks."""
        return (await self._transport.send(calls.windows(pool=pool))).items

    async def pending(self) -> PendingView:
        """Return what waits, grouped by what it asks for and what it waits for."""
        return await self._transport.send(calls.pending())
