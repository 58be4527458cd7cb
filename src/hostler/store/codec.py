"""Records to rows and back, and how the rows of an older Hostler become today's.

The body of a row is the record as canonical JSON. All bodies in a store have one format, whose
number the store keeps. A change of a record's shape that its defaults do not cover raises the
version of `RECORD_FORMAT` and adds an upcast; opening an older store backs it up and rewrites its
bodies once, so that nothing else ever meets an old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from hostler.base.encoding import decode, encode
from hostler.model import KINDS, Record
from hostler.ports.store import Change, StoreCorrupt

Upcast = Callable[[dict[str, object]], dict[str, object] | None]
"""Makes a body (as plain JSON data) one format newer; `None` drops the record."""


class RecordFormat(msgspec.Struct, frozen=True):
    """A format of bodies, and the way to it from every older one."""

    version: int
    """Raised by one with every change that needs an upcast."""
    upcasts: Mapping[int, Mapping[str, Upcast]] = {}
    """By the format they start from, then by kind; a kind without one has not changed."""

    def upgrade(self, kind: str, key: str, body: bytes, *, from_version: int) -> bytes | None:
        """Return `body` in this format; `None` if there is no such record any more.

        Raises:
            StoreCorrupt: The body is not the JSON object that it must be; restore a backup.
        """
        steps = [
            step
            for version in range(from_version, self.version)
            if (step := self.upcasts.get(version, {}).get(kind)) is not None
        ]
        if not steps:
            return body
        value: dict[str, object] | None
        try:
            value = decode(body, dict[str, object])
        except msgspec.MsgspecError as error:
            raise _unreadable(kind, key) from error
        for step in steps:
            if value is None:
                return None
            value = step(value)
        return None if value is None else encode(value)


RECORD_FORMAT: Final = RecordFormat(version=1)
"""The format that this Hostler writes."""


def put(record: Record) -> Change:
    """Return the change that puts a record."""
    return Change(record.KIND, record.key, encode(record))


def removal(kind: str, key: str) -> Change:
    """Return the change that removes a record."""
    return Change(kind, key, None)


def decode_record(
    kind: str, key: str, body: bytes, *, kinds: Mapping[str, type[Record]] = KINDS
) -> Record:
    """Return the record that a row holds.

    Raises:
        StoreCorrupt: There is no such kind, or the row does not hold one; restore a backup.
    """
    struct = kinds.get(kind)
    if struct is None:
        raise _unreadable(kind, key)
    try:
        record = decode(body, struct)
    except msgspec.MsgspecError as error:
        raise _unreadable(kind, key) from error
    if record.key != key:
        raise _unreadable(kind, key)
    return record


def decode_records(
    records: Mapping[str, Mapping[str, bytes]], *, kinds: Mapping[str, type[Record]] = KINDS
) -> Iterator[Record]:
    """Yield the record of every row of a loaded store, in the store's order.

    Raises:
        StoreCorrupt: As `decode_record`.
    """
    for kind, bodies in records.items():
        for key, body in bodies.items():
            yield decode_record(kind, key, body, kinds=kinds)


def _unreadable(kind: str, key: str) -> StoreCorrupt:
    return StoreCorrupt(
        "record_unreadable",
        "a record in the store cannot be read: restore the newest backup that lies beside it",
        kind=kind,
        key=key,
    )
