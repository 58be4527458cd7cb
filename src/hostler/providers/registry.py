"""The registry: finds providers by name, checks their options, and opens each once.

Anybody's package may add a provider: an entry point in the group `hostler.providers` that leads to
a `ProviderKind`. None is imported before its name is used.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

import msgspec

from hostler.ports.clock import Clock
from hostler.ports.provider import Provider, ProviderContext, ProviderKind, RequestInvalid
from hostler.wire.documents import DocumentProblem, check_value

GROUP: Final = "hostler.providers"


class Registry:
    """All providers of one server."""

    def __init__(
        self, folder: Path, clock: Clock, given: Mapping[str, ProviderKind] | None = None
    ) -> None:
        """Make a registry.

        Args:
            folder: Where providers may keep files, each in a folder of its own name.
            clock: What time it is for them.
            given: Providers besides those that are installed; they win over them.
        """
        self._folder = folder
        self._clock = clock
        self._kinds: dict[str, ProviderKind] = dict(given or {})
        self._entry_points: dict[str, EntryPoint] | None = None
        self._opened: dict[str, Provider] = {}

    def names(self) -> list[str]:
        """Return the names of all providers, installed or given, without loading any."""
        return sorted({*self._kinds, *self._installed()})

    def _installed(self) -> dict[str, EntryPoint]:
        if self._entry_points is None:
            self._entry_points = {found.name: found for found in entry_points(group=GROUP)}
        return self._entry_points

    def kind(self, name: str) -> ProviderKind:
        """Return a provider's kind, loading it if it has not been used yet.

        Raises:
            RequestInvalid: There is none of that name, or it cannot be loaded.
        """
        if name not in self._kinds:
            self._kinds[name] = self._load(name)
        return self._kinds[name]

    def _load(self, name: str) -> ProviderKind:
        found = self._installed().get(name)
        if found is None:
            near = difflib.get_close_matches(name, self.names(), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            known = ", ".join(self.names()) or "none"
            raise RequestInvalid(
                f"there is no provider of that name{hint}", provider=name, known=known
            )
        try:
            kind = found.load()
        except ImportError as error:
            raise RequestInvalid(
                "the provider cannot be loaded: install what it needs",
                provider=name,
                missing=error.name or str(error),
            ) from error
        if not isinstance(kind, ProviderKind):
            raise RequestInvalid(
                "the entry point does not lead to a ProviderKind", provider=name, at=found.value
            )
        return kind

    def opened(self, name: str, fleet_id: str) -> Provider:
        """Return a provider, opening it if it has not been used yet.

        Raises:
            RequestInvalid: There is none of that name, or it cannot be loaded.
        """
        if name not in self._opened:
            self._opened[name] = self.kind(name).open(
                ProviderContext(fleet_id=fleet_id, folder=self._folder / name, clock=self._clock)
            )
        return self._opened[name]

    def problems_of(self, name: str, options: Mapping[str, Any]) -> list[DocumentProblem]:
        """Return everything that is wrong with a tier's provider and its options.

        Paths begin at the tier: `provider`, `options.zone`.
        """
        try:
            kind = self.kind(name)
        except RequestInvalid as refusal:
            return [DocumentProblem(path="provider", code=refusal.code, message=str(refusal))]
        reading = check_value(dict(options), kind.options_type)
        return [
            msgspec.structs.replace(problem, path=_inside("options", problem.path), line=None)
            for problem in reading.problems
        ]

    async def close(self) -> None:
        """Close every provider that was opened. Machines stay."""
        opened, self._opened = self._opened, {}
        for provider in opened.values():
            await provider.close()


def read_options(kind: ProviderKind, options_json: str) -> msgspec.Struct:
    """Read the options of a tier as they stand in its record.

    Raises:
        RequestInvalid: They do not fit the provider as it is installed now.
    """
    try:
        return msgspec.json.decode(options_json, type=kind.options_type)
    except msgspec.MsgspecError as error:
        raise RequestInvalid(
            "the provider does not take the tier's options", provider=kind.name, why=str(error)
        ) from error


def _inside(outer: str, path: str) -> str:
    if not path:
        return outer
    return f"{outer}{path}" if re.match(r"\[", path) else f"{outer}.{path}"
