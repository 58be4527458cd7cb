"""Reading what people write: files, folders and standard input, every error of all at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import counted

if TYPE_CHECKING:
    from hostler.wire.documents import BundleDocument, Reading

STANDARD_INPUT: Final = Path("-")
SUFFIXES: Final = (".yaml", ".yml", ".json")
"""What is read of a folder."""


def name_of(path: Path) -> str:
    """Return how messages call a file."""
    return "standard input" if path == STANDARD_INPUT else str(path)


def read_text(path: Path) -> str:
    """Read a file or standard input.

    Raises:
        CommandError: It cannot be read.
    """
    try:
        if path == STANDARD_INPUT:
            return sys.stdin.read()
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CommandError(f"there is no file {path}", code=ExitCode.BAD_INPUT) from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not text in UTF-8", code=ExitCode.BAD_INPUT) from error
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CommandError(f"cannot read {path}: {why}", code=ExitCode.BAD_INPUT) from error


def read_bundle_files(paths: Sequence[Path]) -> list[Reading[BundleDocument]]:
    """Read the bundles of files, folders (their YAML and JSON files, by name) and standard input.

    Raises:
        CommandError: A file cannot be read, or bundles have problems; all are in the error.
    """
    from hostler.wire.documents import read_bundles

    readings = [
        reading
        for path in _files(paths)
        for reading in read_bundles(read_text(path), name_of(path))
    ]
    _require_all(readings)
    return readings


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(one for one in path.iterdir() if one.suffix in SUFFIXES)
        if not found:
            raise CommandError(
                f"the folder {path} has no {', '.join(SUFFIXES)} file", code=ExitCode.BAD_INPUT
            )
        yield from found


def _require_all(readings: Sequence[Reading[BundleDocument]]) -> None:
    """Refuse what has problems; within one file the reader has found bundles that stand twice."""
    told = [problem.told(reading.source) for reading in readings for problem in reading.problems]
    source_by_bundle: dict[str, str] = {}
    for reading in readings:
        bundle = reading.document.bundle if reading.document else ""
        first = source_by_bundle.setdefault(bundle, reading.source)
        if bundle and first != reading.source:
            told.append(f"{reading.source}: the bundle {bundle} stands in {first} too; remove one")
    if told:
        sources = sorted({reading.source for reading in readings if reading.problems})
        places = sources[0] if len(sources) == 1 else "several files"
        raise CommandError(
            f"{counted(len(told), 'problem')} in {places}", code=ExitCode.BAD_INPUT, details=told
        )
