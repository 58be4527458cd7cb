"""The registry: finds providers by name, checks their options, and opens each once.

Anybody's package may add a provider: an entry point in the group `hostler.providers` that leads to
a `ProviderKind`. None is imported before its name is used.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

import msgspec

from hostler.ports.clock import Clock
from hostler.ports.provider import (
    PROVIDER_API_VERSION,
    Provider,
    ProviderContext,
    ProviderKind,
    RequestInvalid,
    SelfCheck,
)
from hostler.wire.documents import DocumentProblem, check_value

GROUP: Final = "hostler.providers"


class InstalledProvider(msgspec.Struct, frozen=True, kw_only=True):
    """What `hostler providers` shows of one."""

    name: str
    package: str = ""
    """The distribution that brought it, with its version; empty where it was handed in."""
    api_version: int | None = None
    """The version of the port that it was written for."""
    has_agents: bool | None = None
    problem: str = ""
    """Why it cannot be used here; empty: it can."""


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
        except Exception as error:
            # Somebody else's package must not take the others down with it.
            raise RequestInvalid(
                "the provider cannot be loaded: it is broken, or was written for another Hostler",
                provider=name,
                package=_package(found),
                why=f"{type(error).__name__}: {error}",
            ) from error
        if not isinstance(kind, ProviderKind):
            raise RequestInvalid(
                "the entry point does not lead to a ProviderKind", provider=name, at=found.value
            )
        _check_version(name, kind, found)
        return kind

    def installed(self) -> list[InstalledProvider]:
        """Look at every provider that is there, loading each; none stops the others."""
        return [self._look(name) for name in self.names()]

    def _look(self, name: str) -> InstalledProvider:
        found = self._installed().get(name)
        package = "" if found is None else _package(found)
        try:
            kind = self.kind(name)
        except RequestInvalid as refusal:
            return InstalledProvider(name=name, package=package, problem=str(refusal))
        return InstalledProvider(
            name=name, package=package, api_version=kind.api_version, has_agents=kind.has_agents
        )

    async def check(
        self, name: str, options: Mapping[str, Any], fleet_id: str
    ) -> Sequence[SelfCheck]:
        """Let a provider look whether a tier with these options could launch.

        Raises:
            RequestInvalid: There is no such provider, or the options do not fit it.
        """
        kind = self.kind(name)
        read = read_options(kind, msgspec.json.encode(dict(options)).decode())
        if kind.check is None:
            return ()
        return await kind.check(self._context(name, fleet_id), read)

    def _context(self, name: str, fleet_id: str) -> ProviderContext:
        return ProviderContext(fleet_id=fleet_id, folder=self._folder / name, clock=self._clock)

    def opened(self, name: str, fleet_id: str) -> Provider:
        """Return a provider, opening it if it has not been used yet.

        Raises:
            RequestInvalid: There is none of that name, or it cannot be loaded.
        """
        if name not in self._opened:
            self._opened[name] = self.kind(name).open(self._context(name, fleet_id))
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
        problems = [
            msgspec.structs.replace(problem, path=_inside("options", problem.path), line=None)
            for problem in reading.problems
        ]
        if not problems and kind.problems is not None:
            problems = [
                DocumentProblem(path="options", code="options_invalid", message=message)
                for message in kind.problems(reading.require())
            ]
        return problems

    async def close(self) -> None:
        """Close every provider that was opened. Machines stay."""
        opened, self._opened = self._opened, {}
        for provider in opened.values():
            await provider.close()


def _check_version(name: str, kind: ProviderKind, found: EntryPoint) -> None:
    """Compare what a provider was written for with what we are.

    Raises:
        RequestInvalid: They differ; one of the two packages has to be upgraded.
    """
    if kind.api_version == PROVIDER_API_VERSION:
        return
    is_old = kind.api_version < PROVIDER_API_VERSION
    raise RequestInvalid(
        "the provider was written for another version of Hostler's providers: upgrade "
        + ("its package" if is_old else "Hostler"),
        provider=name,
        package=_package(found),
        written_for=kind.api_version,
        ours=PROVIDER_API_VERSION,
    )


def _package(found: EntryPoint) -> str:
    return "" if found.dist is None else f"{found.dist.name} {found.dist.version}"


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
