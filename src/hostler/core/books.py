"""The books: where what machines and holds have used is written down, each stretch of time once.

A machine is one reading on the meter of its offer from the instant it began to cost until it is
confirmed gone. What an hour of many machines costs is written when one of them comes or goes and
when a day ends; in between it follows from the meter and the time. A lease or an allocation is
written when it ends: its part of its machine, over the days it was held.
"""

from __future__ import annotations

from hostler.core.budgets import lease_price
from hostler.core.spend_days import day_at, month_of, months_before, split
from hostler.core.txn import Txn
from hostler.core.uses import offer_key
from hostler.model import Allocation, Lease, Meter, Node, SpendRow
from hostler.model.lease import LeasePhase
from hostler.model.node import Origin
from hostler.model.shape import Requirement, Shape
from hostler.model.spend import LeaseMeter, SpendBy, SpendSettings, Stretch, row_id

_DEFAULTS = SpendSettings()

# -- machines ----------------------------------------------------------------------------------


def keep_machine(txn: Txn, node: Node, started_at_ms: int) -> None:
    """Begin to meter a node's machine, or correct since when it has run."""
    started_at_ms = min(started_at_ms, txn.now_ms)
    known_from_ms = node.metered_from_ms
    if known_from_ms is None:
        _turn(txn, node, 1)
        _write_machine(txn, node, started_at_ms, txn.now_ms)
    else:
        settle(txn, txn.fleet.meters[offer_key(node.pool, node.tier, node.offer)])
        _write_machine(txn, node, started_at_ms, known_from_ms)
    txn.change(
        txn.fleet.nodes[node.node_id], started_at_ms=started_at_ms, metered_from_ms=started_at_ms
    )


def close_machine(txn: Txn, node: Node) -> None:
    """End the metering of a node whose machine is confirmed gone, when its provider says it did."""
    started_at_ms = node.metered_from_ms
    ended_at_ms = _ended_at_ms(node)
    if node.origin is Origin.ORPHAN and ended_at_ms < node.created_at_ms:
        # Late news of a machine that was over before this record: its own record has billed it.
        ended_at_ms = started_at_ms or ended_at_ms
    if started_at_ms is None:
        started_at_ms = node.started_at_ms
        if started_at_ms is None:
            return  # there never was a machine
        ended_at_ms = min(max(ended_at_ms, started_at_ms), txn.now_ms)
        _write_machine(txn, node, started_at_ms, ended_at_ms)
    else:
        ended_at_ms = min(max(ended_at_ms, started_at_ms), txn.now_ms)
        _turn(txn, node, -1)
        _write_machine(txn, node, txn.now_ms, ended_at_ms)
    txn.change(node, metered_from_ms=started_at_ms, metered_until_ms=ended_at_ms)


def _ended_at_ms(node: Node) -> int:
    """Return when a machine ended, by its provider's word where there is one.

    Of one that never had a name nobody can be asked; it was there for as long as its agent spoke.
    """
    if node.ended_at_ms is not None:
        return node.ended_at_ms
    is_nameless = node.machine_id is None and node.silent_since_at_ms is not None
    return (is_nameless and node.silent_since_at_ms) or node.phase_since_at_ms


def _turn(txn: Txn, node: Node, by: int) -> None:
    """Put one machine more or less on the meter of its offer."""
    key = offer_key(node.pool, node.tier, node.offer)
    meter = txn.fleet.meters.get(key)
    if meter is None:
        meter = Meter(pool=node.pool, tier=node.tier, offer=node.offer, as_of_ms=txn.now_ms)
    else:
        meter = settle(txn, meter)
    node_count = meter.node_count + by
    if node_count == 0:
        txn.remove(meter)
        return
    rate = meter.micros_per_hour + by * node.price_microusd_per_hour
    if key in txn.fleet.meters:
        txn.change(meter, node_count=node_count, micros_per_hour=rate)
    else:
        txn.put(
            Meter(
                pool=node.pool,
                tier=node.tier,
                offer=node.offer,
                node_count=node_count,
                micros_per_hour=rate,
                as_of_ms=txn.now_ms,
            )
        )


def settle(txn: Txn, meter: Meter) -> Meter:
    """Write down what a meter has run up until now."""
    if meter.as_of_ms >= txn.now_ms:
        return meter
    _write(
        txn,
        (SpendBy.OFFER, meter.pool, meter.tier, meter.offer),
        (meter.as_of_ms, txn.now_ms),
        node_count=meter.node_count,
        micros_per_hour=meter.micros_per_hour,
    )
    return txn.change(meter, as_of_ms=txn.now_ms)


def _write_machine(txn: Txn, node: Node, from_at_ms: int, to_at_ms: int) -> None:
    """Write one machine's time; what ends before it begins is taken back."""
    sign = 1 if from_at_ms <= to_at_ms else -1
    _write(
        txn,
        (SpendBy.OFFER, node.pool, node.tier, node.offer),
        (min(from_at_ms, to_at_ms), max(from_at_ms, to_at_ms)),
        node_count=sign,
        micros_per_hour=sign * node.price_microusd_per_hour,
    )


# -- holds -------------------------------------------------------------------------------------


def lease_meter(txn: Txn, lease: Lease, node: Node) -> LeaseMeter | None:
    """Return what a lease on a node runs up, or `None` where nobody counts."""
    if not txn.fleet.index.spend.is_metered(lease.pool):
        return None
    return LeaseMeter(tier=node.tier, micros_per_hour=lease_price(lease, node))


def close_lease(txn: Txn, lease: Lease) -> None:
    """Write down what a lease that ends now has taken. Does nothing for one that is not metered."""
    meter, granted_at_ms = lease.meter, lease.granted_at_ms
    if meter is None or granted_at_ms is None:
        return
    _write(
        txn,
        (SpendBy.KEY, lease.pool, "", lease.fairness_key),
        (granted_at_ms, txn.now_ms),
        held_count=1,
        micros_per_hour=meter.micros_per_hour,
    )


def lease_units(lease: Lease, now_ms: int) -> int | None:
    """Return what a lease has cost until now or its end; `None` where nobody counts."""
    if lease.meter is None or lease.granted_at_ms is None:
        return None
    end_ms = now_ms if lease.phase is LeasePhase.HELD else lease.phase_since_at_ms
    return lease.meter.micros_per_hour * (end_ms - lease.granted_at_ms)


def close_allocation(txn: Txn, allocation: Allocation, node: Node) -> None:
    """Write down what an allocation that ends now has taken of its machine."""
    from_at_ms = billed_from_ms(allocation, node)
    if from_at_ms is None or not txn.fleet.index.spend.is_metered(node.pool):
        return
    _write(
        txn,
        (SpendBy.BUNDLE, node.pool, "", allocation.bundle_id),
        (from_at_ms, txn.now_ms),
        held_count=1,
        micros_per_hour=part_price(allocation.requirement, node),
    )


def billed_from_ms(allocation: Allocation, node: Node) -> int | None:
    """Return since when an allocation takes a part of a machine, `None` while there is none."""
    if node.metered_from_ms is None:
        return None
    return max(allocation.created_at_ms, node.metered_from_ms)


def part_price(requirement: Requirement, node: Node) -> int:
    """Return an allocation's part of its node's price.

    It is the mean of its shares of capacity, cores and memory, as far as the node says what it has:
    what shares a node never pays for more than the node.
    """
    return node.price_microusd_per_hour * _part_ppm(requirement, node.shape) // 1_000_000


def _part_ppm(requirement: Requirement, shape: Shape) -> int:
    parts = [
        min(1_000_000, need * 1_000_000 // have)
        for need, have in (
            (requirement.capacity, shape.capacity),
            (requirement.cores_milli, shape.cores_milli),
            (requirement.memory_bytes, shape.memory_bytes),
        )
        if have
    ]
    return sum(parts) // len(parts) if parts else 0


# -- rows --------------------------------------------------------------------------------------


def _write(
    txn: Txn,
    about: tuple[SpendBy, str, str, str],
    span: tuple[int, int],
    *,
    node_count: int = 0,
    held_count: int = 0,
    micros_per_hour: int = 0,
) -> None:
    """Add a stretch of time to the rows of the days that it touches."""
    for day, ms in split(txn.fleet, *span):
        row = _row(txn, about, day)
        txn.put(
            _with(row, node_count * ms, held_count * ms, micros_per_hour * ms),
        )


def _row(txn: Txn, about: tuple[SpendBy, str, str, str], day: int) -> SpendRow:
    """Return the row that stands for a day, as it is or new."""
    by, pool, tier, name = about
    stretch, first = stretch_of(txn, day)
    found = txn.fleet.spend.get(row_id(stretch, first, by, pool, tier, name))
    if found is not None:
        return found
    if by is SpendBy.KEY and _is_beyond(txn, stretch, first, name):
        name = ""
        found = txn.fleet.spend.get(row_id(stretch, first, by, pool, tier, name))
    return found or SpendRow(stretch=stretch, day=first, by=by, pool=pool, tier=tier, name=name)


def stretch_of(txn: Txn, day: int) -> tuple[Stretch, int]:
    """Return in which row a day is kept: its own, its month's, or that of all before."""
    settings = _DEFAULTS if txn.fleet.settings is None else txn.fleet.settings.spend
    today = day_at(txn.fleet, txn.now_ms).number
    if day > today - settings.day_count_max:
        return Stretch.DAY, day
    month = month_of(day)
    if month > months_before(today, settings.month_count_max):
        return Stretch.MONTH, month
    return Stretch.TOTAL, 0


def _is_beyond(txn: Txn, stretch: Stretch, first: int, key: str) -> bool:
    """Say whether so many keys stand apart that this one is not; one with a budget always does."""
    settings = _DEFAULTS if txn.fleet.settings is None else txn.fleet.settings.spend
    count = txn.fleet.index.spend.key_rows.count(f"{stretch.value}/{first}")
    if count < settings.key_count_max:
        return False
    budgets = txn.fleet.budgets.rows.values()
    return not any(budget.fairness_key == key for budget in budgets)


def fold(txn: Txn) -> None:
    """Add rows that have grown old to those of their month, and of all before."""
    for bucket in txn.fleet.index.spend.rows.buckets():
        stretch, _, day = bucket.partition("/")
        if stretch == Stretch.TOTAL.value or stretch_of(txn, int(day)) == (stretch, int(day)):
            continue
        for key in txn.fleet.index.spend.rows.keys(bucket):
            old = txn.fleet.spend[key]
            txn.remove(old)
            row = _row(txn, (old.by, old.pool, old.tier, old.name), old.day)
            txn.put(_with(row, old.node_ms, old.held_ms, old.cost_units))


def _with(row: SpendRow, node_ms: int, held_ms: int, cost_units: int) -> SpendRow:
    return SpendRow(
        stretch=row.stretch,
        day=row.day,
        by=row.by,
        pool=row.pool,
        tier=row.tier,
        name=row.name,
        node_ms=row.node_ms + node_ms,
        held_ms=row.held_ms + held_ms,
        cost_units=row.cost_units + cost_units,
    )
