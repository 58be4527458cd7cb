"""The configuration in an allocation's folder, for its job to read.

`config` is a link to `config-NUMBER/`, and changes as a whole: `number` (the number alone),
`values.json` (a mapping) and `files/`. The folder before it stays until the next change, for those
who are reading it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from hostler.wire.work import Config

NAME: Final = "config"

KEPT_COUNT: Final = 2
"""The one that is read from now on, and the one before."""


def write(folder: Path, config: Config) -> None:
    """Put a configuration into an allocation's folder.

    Raises:
        OSError: It could not be written; what was there before is there still.
    """
    if number_of(folder) == config.number:
        return
    fresh = folder / f"{NAME}-{config.number}"
    shutil.rmtree(fresh, ignore_errors=True)  # of a try that was cut off
    (fresh / "files").mkdir(mode=0o750, parents=True)
    _write(fresh / "number", str(config.number))
    _write(fresh / "values.json", config.values_json)
    for name, text in sorted(config.files.items()):
        _write(fresh / "files" / name, text)
    link = folder / f"{NAME}.new"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    link.replace(folder / NAME)
    for old in _numbers(folder)[:-KEPT_COUNT]:
        shutil.rmtree(folder / f"{NAME}-{old}", ignore_errors=True)


def number_of(folder: Path) -> int:
    """Say which number is there; 0 when none is."""
    try:
        return int((folder / NAME).readlink().name.rpartition("-")[2])
    except (OSError, ValueError):
        return 0


def _numbers(folder: Path) -> list[int]:
    found = (each.name.rpartition("-")[2] for each in folder.glob(f"{NAME}-*"))
    return sorted(int(number) for number in found if number.isdigit())


def _write(file: Path, text: str) -> None:
    # It may hold what is nobody else's business.
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        target.write(text.encode())
