"""Writing lists of one kind in every format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hostler.cli.kinds import Kind
from hostler.cli.output import OutputFormat, say_data, say_table
from hostler.cli.remote import now_ms
from hostler.cli.terminal import note, say

V = TypeVar("V")


def say_list(
    found: Sequence[V], kind: Kind[V], output: OutputFormat, *, is_one: bool = False
) -> None:
    """Write things of one kind; as data a list stands under `items`, and one thing alone."""
    match output:
        case OutputFormat.NAME:
            for one in found:
                say(f"{kind.noun}/{kind.id_of(one)}")
        case OutputFormat.JSON | OutputFormat.YAML:
            say_data(found[0] if is_one else {"items": list(found)}, output)
        case OutputFormat.TABLE | OutputFormat.WIDE:
            if not found:
                note(f"there are no {kind.plural}")
                return
            is_wide = output is OutputFormat.WIDE
            say_table(found, kind.columns, now_ms=now_ms(), is_wide=is_wide)
