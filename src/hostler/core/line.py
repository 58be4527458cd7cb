"""The waiting line of leases, in groups of equal pool, requirement and fairness key.

Within a group nobody can be served before the first, so whoever looks for the next lease looks at
one of each requirement. A group whose key is at its cap stands aside as a whole: a release costs
the same with ten thousand leases of a capped key in line as with none.
"""

from __future__ import annotations

from typing import Final

from hostler.base.encoding import encode
from hostler.core.tables import Line, Order
from hostler.model import Budget, Lease, Pool
from hostler.model.lease import LeasePhase
from hostler.model.shape import NOTHING_REQUIRED, Requirement

_SEPARATOR = "\x00"

_LAST: Final[tuple[Order, str]] = ((2**63,), "")
"""After every place in line."""


class _Group:
    """Waiting leases of one pool, requirement and key."""

    __slots__ = ("count", "name", "text", "wanted", "wish")

    def __init__(self, name: str, text: str, wish: _Wish) -> None:
        self.name = name
        self.text = text
        self.wish = wish
        self.count = 0
        self.wanted = 0
        """How many of them could be granted, as far as the key's cap goes."""


class _Wish:
    """One requirement in one pool, with everyone who has it."""

    __slots__ = ("bucket", "count", "requirement", "wanted")

    def __init__(self, bucket: str, requirement: Requirement) -> None:
        self.bucket = bucket
        self.requirement = requirement
        self.count = 0
        self.wanted = 0


class _Key:
    """What one fairness key holds and waits for in one pool."""

    __slots__ = ("groups", "held_count", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.held_count = 0
        self.groups: dict[str, _Group] = {}


class LeaseLine:
    """Who waits, in the order of priority and then age, and who of them may be served."""

    def __init__(self) -> None:
        self._members = Line()
        """Leases by group."""
        self._fronts = Line()
        """Groups by wish, each at the place of its first lease; those of capped keys are out."""
        self._group_by_lease: dict[str, tuple[_Group, _Key]] = {}
        self._wishes: dict[str, dict[str, _Wish]] = {}
        self._keys: dict[str, dict[str, _Key]] = {}
        self._counts: dict[str, int] = {}
        self._caps: dict[str, int] = {}
        self._barred: dict[str, dict[str, None]] = {}
        """By fairness key, the pools in which a budget holds it back; empty text for all."""
        self._arrivals: dict[str, dict[str, Lease]] = {}
        """By pool, while nobody else waits there: plain requests in the order of their coming, of
        whom most are served within the step and never need a place in any order."""

    # -- following writes --------------------------------------------------------------------

    def update(self, key: str, old: Lease | None, new: Lease | None) -> None:
        """Follow one write that changes a lease's phase."""
        if old is not None:
            if old.phase is LeasePhase.WAITING:
                self._depart(key, old)
            elif old.phase is LeasePhase.HELD:
                self._hold(old, -1)
        if new is not None:
            if new.phase is LeasePhase.HELD:
                self._hold(new, 1)
            elif new.phase is LeasePhase.WAITING:
                self._arrive(key, new)

    def update_pool(self, key: str, _old: Pool | None, new: Pool | None) -> None:
        """Follow one write of a pool: its cap decides who stands aside."""
        cap = None if new is None else new.lease_per_key_max
        if cap == self._caps.get(key):
            return
        self._file(key)
        if cap is None:
            del self._caps[key]
        else:
            self._caps[key] = cap
        for held in self._keys.get(key, {}).values():
            self._arrange(key, held)

    def update_budget(self, _key: str, old: Budget | None, new: Budget | None) -> None:
        """Follow one write of a budget: a key that it holds back stands aside."""
        was, now = _bar(old), _bar(new)
        if was == now:
            return
        for bar, is_set in ((was, False), (now, True)):
            if bar is None:
                continue
            key, pool = bar
            if is_set:
                self._barred.setdefault(key, {})[pool] = None
            else:
                del self._barred[key][pool]
                if not self._barred[key]:
                    del self._barred[key]
            for name in [pool] if pool else sorted({*self._keys, *self._arrivals}):
                self._file(name)
                found = self._keys.get(name, {}).get(key)
                if found is not None:
                    self._arrange(name, found)

    def _is_barred(self, pool: str, fairness_key: str) -> bool:
        pools = self._barred.get(fairness_key)
        return pools is not None and ("" in pools or pool in pools)

    def _arrive(self, lease_id: str, lease: Lease) -> None:
        pool = lease.pool
        self._counts[pool] = self._counts.get(pool, 0) + 1
        arrivals = self._arrivals.get(pool)
        if pool not in self._caps and not self._barred and _is_plain(lease):
            if arrivals is None and self._counts[pool] == 1:
                self._arrivals[pool] = {lease_id: lease}
                return
            if arrivals is not None and _order(next(reversed(arrivals.values()))) < _order(lease):
                arrivals[lease_id] = lease
                return
        self._file(pool)
        self._enter(lease_id, lease)

    def _file(self, pool: str) -> None:
        """Give everyone who has just come a place in line."""
        arrivals = self._arrivals.pop(pool, None)
        if arrivals is not None:
            for lease_id, lease in arrivals.items():
                self._enter(lease_id, lease)

    def _depart(self, lease_id: str, lease: Lease) -> None:
        self._counts[lease.pool] -= 1
        arrivals = self._arrivals.get(lease.pool)
        if arrivals is None:
            self._leave(lease_id, lease)
            return
        del arrivals[lease_id]
        if not arrivals:
            del self._arrivals[lease.pool]

    def _enter(self, lease_id: str, lease: Lease) -> None:
        key = self._key(lease.pool, lease.fairness_key)
        text = _text_of(lease.requirement)
        group = key.groups.get(text)
        if group is None:
            wish = self._wish(lease.pool, text, lease.requirement)
            name = f"{wish.bucket}{_SEPARATOR}{lease.fairness_key}"
            group = key.groups[text] = _Group(name, text, wish)
        self._members.set(lease_id, (group.name, _order(lease)))
        self._group_by_lease[lease_id] = (group, key)
        group.count += 1
        group.wish.count += 1
        self._arrange(lease.pool, key)

    def _leave(self, lease_id: str, lease: Lease) -> None:
        group, key = self._group_by_lease.pop(lease_id)
        self._members.set(lease_id, None)
        group.count -= 1
        group.wish.count -= 1
        self._arrange(lease.pool, key)
        if not group.count:
            del key.groups[group.text]
            if not group.wish.count:
                del self._wishes[lease.pool][group.text]
        self._forget(lease, key)

    def _hold(self, lease: Lease, by: int) -> None:
        key = self._key(lease.pool, lease.fairness_key)
        key.held_count += by
        if key.groups:
            self._arrange(lease.pool, key)
        self._forget(lease, key)

    def _forget(self, lease: Lease, key: _Key) -> None:
        if not key.held_count and not key.groups:
            del self._keys[lease.pool][lease.fairness_key]

    def _key(self, pool: str, fairness_key: str) -> _Key:
        keys = self._keys.get(pool)
        if keys is None:
            keys = self._keys[pool] = {}
        found = keys.get(fairness_key)
        if found is None:
            found = keys[fairness_key] = _Key(fairness_key)
        return found

    def _wish(self, pool: str, text: str, requirement: Requirement) -> _Wish:
        wishes = self._wishes.setdefault(pool, {})
        found = wishes.get(text)
        if found is None:
            found = wishes[text] = _Wish(f"{pool}{_SEPARATOR}{text}", requirement)
        return found

    def _arrange(self, pool: str, key: _Key) -> None:
        """Let the groups of a key stand where its first leases do, or aside while it is capped."""
        cap = self._caps.get(pool)
        left = None if cap is None else max(0, cap - key.held_count)
        if self._barred and self._is_barred(pool, key.name):
            left = 0
        is_aside = left == 0
        groups = list(key.groups.values())
        if len(groups) > 1 and left:
            # Who of one key comes first takes what room there is.
            groups.sort(key=lambda group: self._members.head(group.name) or _LAST)
        for group in groups:
            wanted = group.count if left is None or left > group.count else left
            if left is not None:
                left -= wanted
            self._stand(group, None if is_aside else self._members.head(group.name), wanted)

    def _stand(self, group: _Group, head: tuple[Order, str] | None, wanted: int) -> None:
        group.wish.wanted += wanted - group.wanted
        group.wanted = wanted
        self._fronts.set(group.name, None if head is None else (group.wish.bucket, head[0]))

    # -- asking ------------------------------------------------------------------------------

    def count(self, pool: str) -> int:
        """Return how many wait in the pool's line, at no cost."""
        return self._counts.get(pool, 0)

    def held_count(self, pool: str, fairness_key: str) -> int:
        """Return how many leases a key holds in the pool, at no cost."""
        key = self._keys.get(pool, {}).get(fairness_key)
        return 0 if key is None else key.held_count

    def fronts(self, pool: str) -> list[str]:
        """Return the first lease of each requirement, in line order; capped keys stand aside."""
        arrivals = self._arrivals.get(pool)
        if arrivals is not None:
            return [next(iter(arrivals))]
        heads = [
            head
            for wish in self._wishes.get(pool, {}).values()
            if (head := self._fronts.head(wish.bucket)) is not None
        ]
        if len(heads) > 1:
            heads.sort()
        return [self._members.first(name) or "" for _, name in heads]

    def demand(self, pool: str) -> list[tuple[Requirement, int]]:
        """Return how many more slots of each requirement could be used, in line order.

        Leases that their key's cap holds back want nothing: a slot more would not help them.
        """
        self._file(pool)
        wishes = [
            (self._fronts.head(wish.bucket), wish)
            for wish in self._wishes.get(pool, {}).values()
            if wish.wanted
        ]
        wishes.sort(key=lambda each: each[0] or ((), ""))
        return [(wish.requirement, wish.wanted) for _, wish in wishes]

    def requirements(self, pool: str) -> list[Requirement]:
        """Return every requirement that somebody in line has."""
        self._file(pool)
        return [wish.requirement for _, wish in sorted(self._wishes.get(pool, {}).items())]

    def keys(self, pool: str) -> list[str]:
        """Return everyone in line, in order; costs a sort of the whole line."""
        self._file(pool)
        names = [
            group.name for key in self._keys.get(pool, {}).values() for group in key.groups.values()
        ]
        places = [place for name in names for place in self._members.places(name)]
        return [lease_id for _, lease_id in sorted(places)]


def _bar(budget: Budget | None) -> tuple[str, str] | None:
    """Return the key that a budget holds back, and where."""
    if budget is None or budget.held_back_at_ms is None or not budget.fairness_key:
        return None
    return budget.fairness_key, budget.pool


def _order(lease: Lease) -> Order:
    return -lease.priority, lease.requested_at_ms, len(lease.lease_id), lease.lease_id


def _is_plain(lease: Lease) -> bool:
    """Say whether a lease fits every slot and goes before nobody who has come before it."""
    return lease.priority == 0 and lease.requirement is NOTHING_REQUIRED


def _text_of(requirement: Requirement) -> str:
    return "" if requirement == NOTHING_REQUIRED else encode(requirement).decode()
