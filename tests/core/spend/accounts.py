"""A world whose books are looked at, and days to look at them on."""

from typing import Any

import msgspec

from hostler.core.budgets import Usage, usage
from hostler.core.fleet import Fleet
from hostler.core.fleet_settings import FleetSettings
from hostler.core.inputs import ApplyConfiguration, FullScan
from hostler.core.spend_days import day_number
from hostler.core.spend_index import FLEET, Scope
from hostler.core.waiting import Why, why_waiting
from hostler.model import Budget, Lease, Pool
from hostler.model.spend import Period, SpendBy, SpendCap, Stretch
from hostler.testing.builders import a_fixed_tier
from tests.core.leasing.rental import Rental

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
MAY_29 = day_number("2026-05-29") * DAY_MS
"""Midnight, UTC."""

OWN = (a_fixed_tier(),)


def a_cap(period: Period = Period.LIFETIME, **limits: Any) -> SpendCap:
    """Return a cap for ever, unless told otherwise."""
    return SpendCap(period=period, **limits)


def a_budget(*caps: SpendCap, name: str = "b", pool: str = "p", **changes: Any) -> Budget:
    """Return a budget of the pool `p`."""
    return Budget(**{"name": name, "pool": pool, "caps": caps, **changes})


class Accounts(Rental):
    """A world with words for its books."""

    def keep(self, lease: Lease, until_ms: int, every_ms: int = 30_000) -> None:
        """Renew a lease until an instant."""
        while self.now_ms + every_ms < until_ms:
            self.advance(self.now_ms + every_ms)
            self.heartbeat(lease)
        self.advance(until_ms)

    def held_ms(self, scope: Scope = ("pool", "p"), day: str = "") -> int:
        """Return the booked time of leases, of one day or all."""
        stretch, number = (Stretch.DAY, day_number(day)) if day else (Stretch.TOTAL, 0)
        return self.fleet.index.spend.used(scope, SpendBy.KEY, stretch, number).held_ms

    def machine_ms(self, scope: Scope = FLEET) -> int:
        """Return the time of machines, in the books and running."""
        index = self.fleet.index.spend
        running = index.running.get(scope)
        booked = index.used(scope, SpendBy.OFFER, Stretch.TOTAL, 0).node_ms
        return booked + (0 if running is None else running.node_ms(self.now_ms))

    def usage(self, name: str = "b", period: Period = Period.LIFETIME) -> Usage:
        """Return what of a budget is gone now."""
        return usage(self.fleet, self.fleet.budgets[name], period, self.now_ms)

    def why(self, lease: Lease) -> Why:
        """Return why a lease waits now."""
        return why_waiting(self.fleet, self.now(lease))

    def reload_from_store(self) -> None:
        """Begin again with what a store would have kept: records, encoded and decoded."""
        kept = [record for table in self.fleet.tables.values() for record in table.in_order()]
        fleet = Fleet()
        fleet.load(
            [msgspec.json.decode(msgspec.json.encode(one), type=type(one)) for one in kept],
            revision=self.fleet.revision,
            event_seq=self.fleet.event_seq,
            now_ms=self.fleet.now_ms,
        )
        self.fleet = fleet
        self.run(FullScan())

    def configure_money(self, *budgets: Budget, pools: tuple[Pool, ...] = ()) -> None:
        """Apply a configuration with these budgets."""
        settings = self.fleet.settings
        assert settings is not None
        given = {name: getattr(settings, name) for name in FleetSettings.__struct_fields__}
        self.ask(
            ApplyConfiguration,
            fleet_id="f-test",
            settings=FleetSettings(**given),
            pools=pools or tuple(self.fleet.pools.in_order()),
            budgets=budgets,
        )
