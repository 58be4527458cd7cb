"""What differs between two documents, in the words in which people write them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import msgspec

from hostler.wire.documents.tree import child_path

_ABSENT: Final = object()


class DocumentChange(msgspec.Struct, frozen=True, kw_only=True):
    """One value that differs."""

    path: str
    """Such as `pools.runners.warm`; an element that has a name stands under it:
    `pools.runners.tiers.cloud.boot`."""
    before: str | None
    """`None`: it was not there."""
    after: str | None
    """`None`: it is there no more."""


def changes_between(before: msgspec.Struct, after: msgspec.Struct) -> list[DocumentChange]:
    """Return every value that differs, by path; what has its default counts as written."""
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    return list(_changes("", old, new))


def _changes(path: str, old: object, new: object) -> Iterator[DocumentChange]:
    old_parts, new_parts = _parts(old), _parts(new)
    if old_parts is None or new_parts is None or (path and not (old_parts or new_parts)):
        if old != new:
            yield DocumentChange(path=path, before=_told(old), after=_told(new))
        return
    for name in dict.fromkeys([*old_parts, *new_parts]):
        inner = child_path(path, name)
        yield from _changes(inner, old_parts.get(name, _ABSENT), new_parts.get(name, _ABSENT))
    old_order, new_order = list(old_parts), list(new_parts)
    is_reordered = old_order != new_order and sorted(old_order) == sorted(new_order)
    if is_reordered and isinstance(old, list):
        yield DocumentChange(path=path, before=", ".join(old_order), after=", ".join(new_order))


def _parts(value: object) -> dict[str, object] | None:
    """Return what a value has inside it by name, or `None` where it is told as a whole."""
    if isinstance(value, dict):
        return {str(name): inner for name, inner in value.items()}
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        named = {str(one["name"]): one for one in value if one.get("name")}
        return named if len(named) == len(value) else None
    return None


def _told(value: object) -> str | None:
    if value is _ABSENT:
        return None
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
