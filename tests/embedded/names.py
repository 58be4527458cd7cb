"""The names of ours that a page mentions, and whether each exists."""

from __future__ import annotations

import importlib
import inspect
import re
import typing
from pathlib import Path
from typing import Any

import msgspec

import hostler.base.errors
import hostler.client
import hostler.embedded
import hostler.ports.commands
import hostler.ports.provider
import hostler.wire.documents
import hostler.wire.http
from hostler.core.events import EventKind
from hostler.model.reason import Reason
from hostler.wire.documents import ConfigDocument
from tests.tidy.sources import ROOT, product

_ROOMS = (
    hostler.embedded,
    hostler.client,
    hostler.wire.http,
    hostler.wire.documents,
    hostler.ports.provider,
    hostler.ports.commands,
    hostler.base.errors,
)


def names_by_table(page: Path, chapter: str) -> dict[str, list[str]]:
    """The names in the second column of each table of a chapter, by the table's heading."""
    text = page.read_text(encoding="utf-8")
    (found,) = re.findall(rf"^## {chapter}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    tables: dict[str, list[str]] = {}
    heading = ""
    for line in found.splitlines():
        if line.startswith("### "):
            heading = line.removeprefix("### ")
        if line.startswith("|"):
            cell = line.split("|")[2]
            tables.setdefault(heading, []).extend(re.findall(r"`([^`]+)`", cell))
    return tables


def exists(name: str) -> bool:
    """Say whether a name of ours is there."""
    if name.startswith("hostler "):
        return f"\n## `{name}`" in _cli() or f"`{name}" in _cli()
    if name.startswith("hostler."):
        return _imported(name)
    if re.fullmatch(r"(pools|fleet|budgets)(\.\w+)+", name):
        return _setting(ConfigDocument, name.split("."))
    if re.fullmatch(r"[A-Z]\w+(\.\w+)?", name):
        return _of_class(*name.split("."))
    return name in {*EventKind, *Reason} or any(f'"{name}"' in each.text for each in product())


def _cli() -> str:
    return (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def _imported(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return hasattr(importlib.import_module(module), attribute)
    return True


def _of_class(name: str, attribute: str = "") -> bool:
    found = next((getattr(room, name) for room in _ROOMS if hasattr(room, name)), None)
    if found is None or not attribute:
        return found is not None
    fields = getattr(found, "__struct_fields__", ())
    is_set = f"self.{attribute} =" in inspect.getsource(found)
    return attribute in fields or hasattr(found, attribute) or is_set


def _setting(kind: Any, path: list[str]) -> bool:
    if not path:
        return True
    for one in _structs(kind):
        hints = typing.get_type_hints(one)
        if path[0] in hints:
            return _setting(hints[path[0]], path[1:])
    return False


def _structs(kind: Any) -> list[type]:
    """The documents that may stand where a type is written: itself, or in a list or mapping."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [found for each in typing.get_args(kind) for found in _structs(each)]
