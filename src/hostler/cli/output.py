"""How answers are written: tables for people, JSON, YAML and names for programs.

A table is plain text in aligned columns, never cut to the width of a terminal, so that it can be
read, piped and grepped alike. JSON and YAML carry exactly what the API answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Generic, TypeAlias, TypeVar

import typer

from hostler.cli.terminal import Style, is_colourful, painted, say, shown, style_of

V = TypeVar("V")

GAP: Final = "   "
"""Between columns, as kubectl does it."""


class OutputFormat(StrEnum):
    """What `-o` takes."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


OutputOption: TypeAlias = Annotated[
    OutputFormat,
    typer.Option(
        "--output", "-o", metavar="FORMAT", help="table, wide, json, yaml, or name for ids alone."
    ),
]


class At(int):
    """An instant in a cell, in milliseconds since 1970 UTC; shown as its age."""


Cell: TypeAlias = str | int | At | None


@dataclass(frozen=True)
class Column(Generic[V]):
    """One column of a table.

    Attributes:
        title: Its heading.
        cell: What stands in it for a value; `None` is shown as a dash.
        is_wide: Shown with `-o wide` alone.
        is_state: Phases and the like, which colour tells apart.
    """

    title: str
    cell: Callable[[V], Cell]
    is_wide: bool = False
    is_state: bool = False


def age(at_ms: int, now_ms: int) -> str:
    """Write how long ago an instant was, in its largest unit: `5m`; nought for the future."""
    seconds = max(0, now_ms - at_ms) // 1_000
    for unit, unit_seconds, least in (("d", 86_400, 2), ("h", 3_600, 3), ("m", 60, 2)):
        if seconds >= unit_seconds * least:
            return f"{seconds // unit_seconds}{unit}"
    return f"{seconds}s"


def counted(count: int, noun: str) -> str:
    """Write a count with its noun: `1 pool`, `2 pools`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def cell_text(cell: Cell, now_ms: int) -> str:
    """Write a cell."""
    match cell:
        case At():
            return age(cell, now_ms)
        case None | "":
            return "-"
        case int():
            return str(cell)
        case str():
            return shown(cell)


def table(
    rows: Sequence[V],
    columns: Sequence[Column[V]],
    *,
    now_ms: int,
    is_wide: bool = False,
    is_colour: bool = False,
) -> list[str]:
    """Lay rows out under headings; the last column is not padded."""
    kept = [column for column in columns if is_wide or not column.is_wide]
    texts = [[cell_text(column.cell(row), now_ms) for column in kept] for row in rows]
    titles = [column.title for column in kept]
    widths = [max(map(len, cells)) for cells in zip(titles, *texts, strict=True)]
    lines = [_line(titles, widths, [None] * len(kept), is_colour=is_colour)]
    for text in texts:
        styles = [
            style_of(cell) if column.is_state else None
            for column, cell in zip(kept, text, strict=True)
        ]
        lines.append(_line(text, widths, styles, is_colour=is_colour))
    return lines


def _line(
    cells: Sequence[str],
    widths: Sequence[int],
    styles: Sequence[Style | None],
    *,
    is_colour: bool,
) -> str:
    last = len(cells) - 1
    parts = [
        # Padded outside the colour, so that escape sequences do not count as width.
        painted(cell, style, is_colour=is_colour) + " " * (0 if i == last else width - len(cell))
        for i, (cell, width, style) in enumerate(zip(cells, widths, styles, strict=True))
    ]
    return GAP.join(parts).rstrip()


def fields(pairs: Sequence[tuple[str, Cell]], *, now_ms: int, indent: str = "") -> list[str]:
    """Lay labels and values out, one a line; those without a value are left out."""
    told = [(label, cell) for label, cell in pairs if cell is not None and cell != ""]
    width = max((len(label) for label, _ in told), default=0) + 1
    is_colour = is_colourful(sys.stdout)
    lines = []
    for label, cell in told:
        text = f"{age(cell, now_ms)} ago" if isinstance(cell, At) else cell_text(cell, now_ms)
        style = style_of(text) if isinstance(cell, str) else None
        shown_text = painted(text, style, is_colour=is_colour)
        lines.append(f"{indent}{(label + ':').ljust(width)} {shown_text}")
    return lines


def say_table(
    rows: Sequence[V], columns: Sequence[Column[V]], *, now_ms: int, is_wide: bool = False
) -> None:
    """Write a table to standard output."""
    is_colour = is_colourful(sys.stdout)
    for line in table(rows, columns, now_ms=now_ms, is_wide=is_wide, is_colour=is_colour):
        say(line)


def say_data(value: object, output: OutputFormat) -> None:
    """Write a value as JSON or YAML."""
    say(data_text(value, output))


def data_text(value: object, output: OutputFormat) -> str:
    """Give a value as JSON or YAML text, fields in the order that the API defines."""
    import msgspec

    if output is OutputFormat.YAML:
        import yaml

        plain: Any = msgspec.to_builtins(value)
        text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
        return text.rstrip("\n")
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
