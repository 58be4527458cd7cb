"""Spend: what machines and holds have cost so far, what runs up now, and how far it may go.

Money is whole *cost units*: millionths of the fleet's currency an hour, times milliseconds. A
price times a time is then exact, whatever happens in whatever order; it is divided only to be
shown.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final

from hostler.model.record import Record, Value

UNITS_PER_MICRO: Final = 3_600_000
"""Cost units in a millionth of the currency."""


class Period(StrEnum):
    """After which time a cap begins anew."""

    DAILY = "daily"
    MONTHLY = "monthly"
    LIFETIME = "lifetime"
    """Never."""


class SpendBy(StrEnum):
    """To what a row of the books says that spend belongs."""

    OFFER = "offer"
    """Machines, from their start to their confirmed end, by pool, tier and offer: all that is
    paid."""
    KEY = "key"
    """Leases, by pool and fairness key: their slot's part of the machine."""
    BUNDLE = "bundle"
    """Allocations, by pool and bundle: their part of the machine."""


class Stretch(StrEnum):
    """How much time a row of the books covers."""

    DAY = "day"
    MONTH = "month"
    TOTAL = "total"
    """Everything that is older than months are kept."""


class SpendSettings(Value, frozen=True, kw_only=True):
    """How the books are kept."""

    currency: str = "USD"
    """Of every price and cap: nothing is converted."""
    time_zone: str = "UTC"
    """Whose midnights divide the days and months."""
    day_count_max: int = 62
    """Days that are kept one by one; older ones are added up by month."""
    month_count_max: int = 60
    """Months that are kept one by one; older ones are added up."""
    key_count_max: int = 1_000
    """Fairness keys that are kept apart in one day; the rest of them stand together."""


class SpendRow(Record, frozen=True, kw_only=True):
    """One line of the books: what was used by one thing in one stretch of time."""

    KIND: ClassVar[str] = "spend"

    stretch: Stretch
    day: int
    """Number of the local day since 1970-01-01; of a month its first; 0 for the total."""
    by: SpendBy
    pool: str
    tier: str = ""
    name: str
    """The offer (empty: machines that joined), the key (empty: all beyond the limit), the
    bundle."""
    node_ms: int = 0
    """Time of machines."""
    held_ms: int = 0
    """Time of leases or allocations."""
    cost_units: int = 0

    @property
    def key(self) -> str:
        """What, where and when; the name comes last, since it may have any character."""
        return row_id(self.stretch, self.day, self.by, self.pool, self.tier, self.name)


def row_id(stretch: Stretch, day: int, by: SpendBy, pool: str, tier: str, name: str) -> str:
    """Return the key of a row."""
    return f"{stretch.value}/{day}/{by.value}/{pool}/{tier}/{name}"


class Meter(Record, frozen=True, kw_only=True):
    """The machines of one offer that run up cost now, as one sum.

    What they have run up since `as_of_ms` follows from the time, so nothing is written while they
    run and a crash loses nothing.
    """

    KIND: ClassVar[str] = "meter"

    pool: str
    tier: str
    offer: str
    node_count: int = 0
    micros_per_hour: int = 0
    """Their prices together."""
    as_of_ms: int
    """Everything before this instant is in the books."""

    @property
    def key(self) -> str:
        """`pool/tier/offer`."""
        return f"{self.pool}/{self.tier}/{self.offer}"


class LeaseMeter(Value, frozen=True, kw_only=True):
    """What a held lease runs up: its slot's part of the price of its machine."""

    tier: str
    micros_per_hour: int


class SpendCap(Value, frozen=True, kw_only=True):
    """How much may be used in one period. What is `None` is not bounded."""

    period: Period
    cost_micros: int | None = None
    node_ms: int | None = None
    held_ms: int | None = None
    """Time of leases together."""


class Budget(Record, frozen=True, kw_only=True):
    """Caps on the spend of the fleet, a pool, a tier, or a fairness key."""

    KIND: ClassVar[str] = "budget"

    name: str
    pool: str = ""
    """Empty: all pools."""
    tier: str = ""
    fairness_key: str = ""
    """Given: only leases of this key count, and machines do not."""
    caps: tuple[SpendCap, ...] = ()
    micros_per_hour_max: int | None = None
    """Prices of what is there at once."""
    node_count_max: int | None = None
    """Machines at once, from asked for until confirmed gone."""
    lease_count_max: int | None = None
    """Leases at once."""
    warn_percents: tuple[int, ...] = (80, 100)
    """Shares of a cap of which people are told, in rising order."""
    warned: dict[str, str] = {}
    """By period: the first day of its window and the highest share told, as `20422/80`."""
    held_back_at_ms: int | None = None
    """When something was first refused under it that nothing freed since could have let in."""

    @property
    def key(self) -> str:
        """The budget's name."""
        return self.name
