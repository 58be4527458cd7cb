"""The waiting line of leases, in groups of equal pool, wish and fairness key.

Within a group nobody can be served before the first, so whoever looks for the next lease looks at
one of each wish. A group whose key is at its cap stands aside as a whole: a release costs the same
with ten thousand leases of a capped key in line as with none.

A lease stands where its time of arrival puts it, its priority counted as time. A key stands back by
one step for each node that it holds already. Both are bounded, so everybody's turn comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hostler.base.encoding import encode
from hostler.core.bars import Bars
from hostler.core.line_rules import LineRules
from hostler.core.slot_index import SlotIndex
from hostler.core.tables import Line, Order
from hostler.model import Budget, Lease, Pool
from hostler.model.lease import LeasePhase, Share
from hostler.model.shape import NOTHING_REQUIRED, Requirement

_SEPARATOR = "\x00"

_LAST: Final[tuple[Order, str]] = ((2**63,), "")
"""After every place in line."""


class _Group:
    """Waiting leases of one pool, wish and key."""

    __slots__ = ("count", "name", "text", "wanted", "wish")

    def __init__(self, name: str, text: str, wish: _Wish) -> None:
        self.name = name
        self.text = text
        self.wish = wish
        self.count = 0
        self.wanted = 0
        """How many of them could be granted, as far as the key's cap goes."""


class _Wish:
    """What some leases of one pool want alike: the same slots would do for each of them."""

    __slots__ = ("bucket", "count", "is_alone", "pinned_to", "requirement", "wanted")

    def __init__(self, bucket: str, lease: Lease) -> None:
        self.bucket = bucket
        self.requirement = lease.requirement
        self.pinned_to = lease.affinity_node_id if lease.is_pinned else None
        """The only node that they take; a new one would not help them."""
        self.is_alone = lease.share is Share.NONE
        """Each of them wants a node for itself."""
        self.count = 0
        self.wanted = 0


class _Key:
    """What one fairness key holds and waits for in one pool."""

    __slots__ = ("groups", "name", "nodes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: dict[str, int] = {}
        """How many leases it holds, by node."""
        self.groups: dict[str, _Group] = {}


class LeaseLine:
    """Who waits, in the order of their turns, and who of them may be served."""

    def __init__(self, slots: SlotIndex) -> None:
        self._slots = slots
        self._members = Line()
        """Leases by group."""
        self._fronts = Line()
        """Groups by wish, each at the place of its first lease; those of capped keys are out."""
        self._group_by_lease: dict[str, tuple[_Group, _Key]] = {}
        self._wishes: dict[str, dict[str, _Wish]] = {}
        self._keys: dict[str, dict[str, _Key]] = {}
        self._in_line: dict[str, dict[str, _Key]] = {}
        """Keys that somebody waits for."""
        self._counts: dict[str, int] = {}
        self._bars = Bars()
        self._rules: dict[str, LineRules] = {}
        self._arrivals: dict[str, dict[str, Lease]] = {}
        """By pool, while nobody else waits there: plain requests in the order of their coming, of
        whom most are served within the step and never need a place in any order."""

    # -- following writes --------------------------------------------------------------------

    def update(self, key: str, old: Lease | None, new: Lease | None) -> None:
        """Follow one write that changes a lease's phase or wish."""
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
        """Follow one write of a pool: its rules decide who stands where, and who stands aside."""
        rules = None if new is None else LineRules(new)
        if rules == self._rules.get(key):
            return
        self._file(key)
        if rules is None:
            del self._rules[key]
        else:
            self._rules[key] = rules
        for held in self._keys.get(key, {}).values():
            self._arrange(key, held)

    def update_budget(self, _key: str, old: Budget | None, new: Budget | None) -> None:
        """Follow one write of a budget: a key that it holds back stands aside."""
        for key, where in self._bars.update(old, new):
            for pool in [where] if where else sorted({*self._keys, *self._arrivals}):
                self._file(pool)
                if key in self._keys.get(pool, {}):
                    self._arrange(pool, self._keys[pool][key])

    def _cap(self, pool: str) -> int | None:
        rules = self._rules.get(pool)
        return None if rules is None else rules.cap

    def _arrive(self, lease_id: str, lease: Lease) -> None:
        pool = lease.pool
        self._counts[pool] = self._counts.get(pool, 0) + 1
        arrivals = self._arrivals.get(pool)
        if self._cap(pool) is None and not self._bars and _is_plain(lease):
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
        text = wish_text(lease)
        group = key.groups.get(text)
        if group is None:
            wish = self._wish(lease, text)
            name = f"{wish.bucket}{_SEPARATOR}{lease.fairness_key}"
            group = key.groups[text] = _Group(name, text, wish)
            self._in_line.setdefault(lease.pool, {})[lease.fairness_key] = key
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
            if not key.groups:
                del self._in_line[lease.pool][lease.fairness_key]
        self._forget(lease, key)

    def _hold(self, lease: Lease, by: int) -> None:
        key = self._key(lease.pool, lease.fairness_key)
        node_id = lease.node_id or ""
        count = key.nodes.get(node_id, 0) + by
        if count:
            key.nodes[node_id] = count
        else:
            del key.nodes[node_id]
        if key.groups:
            self._arrange(lease.pool, key)
        self._forget(lease, key)

    def _forget(self, lease: Lease, key: _Key) -> None:
        if not key.nodes and not key.groups:
            del self._keys[lease.pool][lease.fairness_key]

    def _key(self, pool: str, fairness_key: str) -> _Key:
        keys = self._keys.get(pool)
        if keys is None:
            keys = self._keys[pool] = {}
        found = keys.get(fairness_key)
        if found is None:
            found = keys[fairness_key] = _Key(fairness_key)
        return found

    def _wish(self, lease: Lease, text: str) -> _Wish:
        wishes = self._wishes.setdefault(lease.pool, {})
        found = wishes.get(text)
        if found is None:
            found = wishes[text] = _Wish(f"{lease.pool}{_SEPARATOR}{text}", lease)
        return found

    def _arrange(self, pool: str, key: _Key) -> None:
        """Let the groups of a key stand where its first leases do, or aside while it is capped."""
        rules = self._rules.get(pool)
        cap = None if rules is None else rules.cap
        slot_count = 1 if rules is None else rules.slot_count
        left = None if cap is None else max(0, cap - len(key.nodes)) * slot_count
        if self._bars.holds(pool, key.name):
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
            head = self._members.head(group.name)
            place = None
            if head is not None and not is_aside:
                place = (group.wish.bucket, self._turn(pool, key, head[0]))
            group.wish.wanted += wanted - group.wanted
            group.wanted = wanted
            self._fronts.set(group.name, place)

    def _turn(self, pool: str, key: _Key, order: Order) -> Order:
        """Return the place of a lease among those of other keys."""
        rules = self._rules.get(pool)
        if rules is None or not key.nodes:
            return order
        return (int(order[0]) + len(key.nodes) * rules.step_ms, *order[1:])

    # -- asking ------------------------------------------------------------------------------

    def count(self, pool: str) -> int:
        """Return how many wait in the pool's line, at no cost."""
        return self._counts.get(pool, 0)

    def held_count(self, pool: str, fairness_key: str) -> int:
        """Return on how many nodes of the pool a key holds leases, at no cost."""
        key = self._keys.get(pool, {}).get(fairness_key)
        return 0 if key is None else len(key.nodes)

    def held_nodes(self, pool: str, fairness_key: str) -> list[str]:
        """Return the nodes on which a key holds leases."""
        key = self._keys.get(pool, {}).get(fairness_key)
        return [] if key is None else sorted(key.nodes, key=lambda node: (len(node), node))

    def is_at_cap(self, pool: str, fairness_key: str) -> bool:
        """Say whether a key may be on no further node."""
        cap = self._cap(pool)
        return cap is not None and self.held_count(pool, fairness_key) >= cap

    def fronts(self, pool: str) -> list[str]:
        """Return the first lease of each wish that might be served, in the order of their turns.

        Keys at their cap stand aside, but where they could share a node that they hold.
        """
        arrivals = self._arrivals.get(pool)
        if arrivals is not None:
            return [next(iter(arrivals))]
        heads = [
            head
            for wish in self._wishes.get(pool, {}).values()
            if (wish.pinned_to is None or self._slots.is_free(wish.pinned_to))
            and (head := self._fronts.head(wish.bucket)) is not None
        ]
        rules = self._rules.get(pool)
        if rules is not None and rules.slot_count > 1 and pool in self._in_line:
            heads = list(dict.fromkeys([*heads, *self._at_home(pool)]))
        if len(heads) > 1:
            heads.sort()
        return [self._members.first(name) or "" for _, name in heads]

    def _at_home(self, pool: str) -> Iterator[tuple[Order, str]]:
        """Give the groups of keys for which a slot is free on a node that only they may share."""
        cap, is_free = self._cap(pool), self._slots.is_free
        for name, key in self._in_line[pool].items():
            is_aside = cap is not None and len(key.nodes) >= cap
            if self._bars.holds(pool, name):
                continue
            if self._slots.has_keyed(pool, name) or (
                is_aside and any(is_free(node_id) for node_id in key.nodes)
            ):
                for group in key.groups.values():
                    head = self._members.head(group.name)
                    if head is not None:
                        yield self._turn(pool, key, head[0]), group.name

    def demand(self, pool: str) -> list[tuple[Requirement, int]]:
        """Return how many more slots of each requirement could be used, in the order of turns.

        Leases that their key's cap holds back want nothing: a slot more would not help them. Nor do
        those that wait for one node.
        """
        self._file(pool)
        rules = self._rules.get(pool)
        slot_count = 1 if rules is None else rules.slot_count
        wishes = [
            (self._fronts.head(wish.bucket), wish)
            for wish in self._wishes.get(pool, {}).values()
            if wish.wanted and wish.pinned_to is None
        ]
        wishes.sort(key=lambda each: each[0] or ((), ""))
        return [
            (wish.requirement, wish.wanted * (slot_count if wish.is_alone else 1))
            for _, wish in wishes
        ]

    def requirements(self, pool: str) -> list[Requirement]:
        """Return every requirement that somebody in line has."""
        self._file(pool)
        return [wish.requirement for _, wish in sorted(self._wishes.get(pool, {}).items())]

    def pinned(self, pool: str, node_id: str) -> list[str]:
        """Return those who wait for this node and take no other."""
        names = [
            group.name
            for key in self._in_line.get(pool, {}).values()
            for group in key.groups.values()
            if group.wish.pinned_to == node_id
        ]
        return sorted(lease_id for name in names for lease_id in self._members.keys(name))

    def has_pinned(self, pool: str) -> bool:
        """Say whether anybody waits for one node."""
        return any(wish.pinned_to is not None for wish in self._wishes.get(pool, {}).values())

    def keys(self, pool: str) -> list[str]:
        """Return everyone in line, in the order of their turns; costs a sort of the whole line."""
        self._file(pool)
        places = [
            (self._turn(pool, key, order), lease_id)
            for key in self._in_line.get(pool, {}).values()
            for group in key.groups.values()
            for order, lease_id in self._members.places(group.name)
        ]
        return [lease_id for _, lease_id in sorted(places)]


def _order(lease: Lease) -> Order:
    return lease.line_at_ms, len(lease.lease_id), lease.lease_id


def _is_plain(lease: Lease) -> bool:
    """Say whether a lease fits every slot and goes before nobody who has come before it."""
    return (
        lease.priority == 0
        and lease.requirement is NOTHING_REQUIRED
        and lease.share is Share.ANY
        and not lease.is_pinned
        and not lease.excluded_node_ids
    )


def wish_text(lease: Lease) -> str:
    """Return what a lease wants as text: equal for those for whom the same slots would do."""
    requirement = lease.requirement
    text = "" if requirement == NOTHING_REQUIRED else encode(requirement).decode()
    if lease.share is Share.ANY and not lease.is_pinned and not lease.excluded_node_ids:
        return text
    told: list[object] = [text, lease.share.value, sorted(lease.excluded_node_ids)]
    if lease.is_pinned:
        told.append(lease.affinity_node_id)
    if lease.share is Share.SAME_KEY:
        told.append([lease.fairness_key])
    return encode(told).decode()
