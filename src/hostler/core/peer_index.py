"""Peers: which bundles have a label, and which wish to be near to or apart from others.

Both questions are asked for every replica that is placed, and answered from a few small maps that
follow bundles as they are written; a fleet without such wishes pays a look into an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hostler.model import Bundle
from hostler.model.bundle import Job
from hostler.model.constraint import Affinity, Peers


class PeerIndex:
    """Bundles by what others may call them, and by whom they watch."""

    def __init__(self) -> None:
        self._by_label: dict[str, dict[str, int]] = {}
        self._watchers: dict[str, dict[str, int]] = {}
        self._levelling: dict[str, None] = {}

    def update(self, key: str, old: Bundle | None, new: Bundle | None) -> None:
        """Follow one write."""
        if old is not None and new is not None and _says_same(old, new):
            return
        if old is not None:
            self._levelling.pop(key, None)
        if new is not None and any(rule.skew_max is not None for rule in new.spread):
            self._levelling[key] = None
        for bundle, sign in ((old, -1), (new, 1)):
            if bundle is None:
                continue
            for label in _labels_of(bundle):
                _add(self._by_label, label, key, sign)
            for job in bundle.jobs:
                for affinity in job.affinities:
                    _add(self._watchers, _target_of(bundle.bundle_id, affinity.peers), key, sign)

    def labelled(self, labels: Mapping[str, str]) -> list[str]:
        """Return the bundles that may have all of these labels, sorted; ask them for certainty."""
        found = [set(self._by_label.get(_label(*each), ())) for each in labels.items()]
        return sorted(set.intersection(*found)) if found else []

    @property
    def has_wishes(self) -> bool:
        """Say whether any bundle wishes anything about others, or about its own in number."""
        return bool(self._watchers or self._levelling)

    def levelling(self) -> list[str]:
        """Return the bundles that are spread evenly, sorted: which domains there are matters."""
        return sorted(self._levelling)

    def wishing(self) -> list[str]:
        """Return the bundles that wish anything about others, sorted."""
        return sorted({key for bucket in self._watchers.values() for key in bucket})

    def watchers(self, bundle: Bundle, job: Job) -> list[str]:
        """Return the bundles to which it may matter where a job is, sorted.

        Itself when it is spread evenly; and whoever may wish something about it.
        """
        levelling: list[str] = [bundle.bundle_id] if bundle.bundle_id in self._levelling else []
        if not self._watchers:
            return levelling
        targets = [f"bundle {bundle.bundle_id}"]
        targets += [_label(*each) for each in {**bundle.labels, **job.labels}.items()]
        found = set(levelling)
        for target in targets:
            found.update(self._watchers.get(target, ()))
        return sorted(found)


def is_peer(owner_id: str, peers: Peers, bundle: Bundle, job: Job, replica_index: int) -> bool:
    """Say whether a replica is one of those that a bundle of this id means."""
    wanted = peers.bundle_id or ("" if peers.labels else owner_id)
    if (
        wanted not in ("", bundle.bundle_id)
        or peers.job not in ("", job.name)
        or peers.replica_index not in (None, replica_index)
    ):
        return False
    for name, value in peers.labels.items():
        if job.labels.get(name, bundle.labels.get(name)) != value:
            return False
    return True


def wishes_about(
    owner: Bundle, bundle: Bundle, job: Job, replica_index: int
) -> Iterator[tuple[Job, Affinity]]:
    """Give what the jobs of one bundle wish about a replica of a bundle."""
    for each in owner.jobs:
        for affinity in each.affinities:
            if is_peer(owner.bundle_id, affinity.peers, bundle, job, replica_index):
                yield each, affinity


def _says_same(old: Bundle, new: Bundle) -> bool:
    return old.jobs is new.jobs and old.labels is new.labels and old.spread is new.spread


def _labels_of(bundle: Bundle) -> dict[str, None]:
    labels = [*bundle.labels.items()]
    for job in bundle.jobs:
        labels += job.labels.items()
    return dict.fromkeys(_label(*each) for each in labels)


def _label(name: str, value: str) -> str:
    return f"label {name}={value}"


def _target_of(owner_id: str, peers: Peers) -> str:
    if peers.labels and not peers.bundle_id:
        return _label(*min(peers.labels.items()))
    return f"bundle {peers.bundle_id or owner_id}"


def _add(counts: dict[str, dict[str, int]], name: str, key: str, sign: int) -> None:
    bucket = counts.setdefault(name, {})
    bucket[key] = bucket.get(key, 0) + sign
    if not bucket[key]:
        del bucket[key]
        if not bucket:
            del counts[name]
