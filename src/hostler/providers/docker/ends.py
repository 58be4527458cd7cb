"""When containers that are removed ended, kept in files: the books ask after a crash as well."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

KEPT_MAX: Final = 1_000
"""Ends that are remembered; each is asked for within moments of the removal."""


class Ends:
    """A file for each container that was removed lately."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, machine_id: str, at_ms: int) -> None:
        """Remember the first word about a container's end."""
        file = self._folder / machine_id
        if file.exists():
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_suffix(".new")
        draft.write_text(str(at_ms))
        draft.replace(file)
        kept = sorted(self._folder.iterdir(), key=_age)
        for old in kept[:-KEPT_MAX]:
            old.unlink(missing_ok=True)

    def of(self, machine_id: str) -> int | None:
        """Return when a container ended, if it was removed lately."""
        with suppress(FileNotFoundError):
            return int((self._folder / machine_id).read_text())
        return None


def how_ended(container: Mapping[str, Any]) -> str:
    """Say how a container ended that is there still."""
    state = container["State"]
    out_of_memory = ", out of memory" if state.get("OOMKilled") else ""
    why = f": {state['Error']}" if state.get("Error") else ""
    return f"the container ended with exit code {state.get('ExitCode')}{out_of_memory}{why}"


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0
