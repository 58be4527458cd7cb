"""The journal: what each step was given and what it replaced, enough to run it again.

A row holds the inputs, the timers that fired and the records as they were before. From the present
fleet and the rows behind it any kept revision can be rebuilt backwards; from there the inputs lead
forward again to the same bytes (`hostler.engine.replay`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from hostler.base.encoding import decode, digest, encode_row
from hostler.core.delta import Delta
from hostler.core.inputs import AnyInput
from hostler.core.version import CORE_VERSION
from hostler.ports.store import Change, JournalRow

ABSENT: Final = msgspec.Raw(b"null")
"""The body of a record that is not there."""


class Before(msgspec.Struct, frozen=True, array_like=True):
    """A record as it was before the step."""

    kind: str
    key: str
    body: msgspec.Raw
    """`ABSENT` when it was not there; a union of raw bytes and `None` cannot be read back."""


class JournaledStep(msgspec.Struct, frozen=True, kw_only=True):
    """The body of one row."""

    core_version: int
    inputs: list[AnyInput]
    timers_fired: list[tuple[str, str, int]]
    """Kind, key and instant. Not all of them follow from records: controllers may ask for more."""
    before: list[Before]
    event_count: int
    result_digest: str
    """Of everything that the step decided."""


def result_digest(changes: Sequence[Change], delta: Delta) -> str:
    """Return the digest of what a step decided: records, events, commands that left, answers."""
    told = [
        (change.kind, change.key, ABSENT if change.body is None else msgspec.Raw(change.body))
        for change in changes
    ]
    return digest(encode_row((told, delta.events, delta.dispatches, delta.replies)))


def journal_row(delta: Delta, inputs: Sequence[AnyInput], changes: Sequence[Change]) -> JournalRow:
    """Write a step down."""
    step = JournaledStep(
        core_version=CORE_VERSION,
        inputs=list(inputs),
        timers_fired=list(delta.timers_fired),
        before=[
            Before(kind, key, ABSENT if record is None else msgspec.Raw(encode_row(record)))
            for (kind, key), record in delta.before.items()
        ],
        event_count=len(delta.events),
        result_digest=result_digest(changes, delta),
    )
    return JournalRow(revision=delta.revision, now_ms=delta.now_ms, body=encode_row(step))


def read_row(row: JournalRow) -> JournaledStep:
    """Read a step back."""
    return decode(row.body, JournaledStep)
