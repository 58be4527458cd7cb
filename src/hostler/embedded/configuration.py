"""The configuration of an embedded fleet: a file, or values that the program has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from hostler.api.configuration import Configuration, ConfigurationFile
from hostler.wire.documents import ConfigDocument, Reading, read_config

Config: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | ConfigDocument
"""The path of a `hostler.yaml`, or what would stand in it."""

IN_PROGRAM: Final = "the program's configuration"
"""What configurations that are no files are called."""


class GivenConfiguration(Configuration):
    """What the program gave last."""

    def __init__(self, config: Config) -> None:
        super().__init__(_source_of(config), ConfigDocument())
        self._config = config

    def give(self, config: Config) -> None:
        """Have the next reload read this."""
        self._config = config
        self._source = _source_of(config)

    def read(self) -> str:
        """See `Configuration.read`."""
        return _text_of(self._config)

    def closing(self, notice_ms: int) -> Reading[ConfigDocument]:
        """Return what is in force with every pool disabled, and leases left so much time."""
        notice = f"{notice_ms}ms"
        pools = {
            name: replace(pool, enabled=False, retire_notice=notice)
            for name, pool in self.document.pools.items()
        }
        return Reading(replace(self.document, pools=pools), ())


def reading_of(config: Config) -> Reading[ConfigDocument]:
    """Read a configuration.

    Raises:
        Rejected: It is a file that cannot be read.
    """
    return read_config(_text_of(config), _source_of(config))


def _text_of(config: Config) -> str:
    match config:
        case str() | os.PathLike():
            return ConfigurationFile(Path(config), ConfigDocument()).read()
        case ConfigDocument():
            return msgspec.json.encode(_written(config)).decode()
        case values:
            return msgspec.json.encode(values).decode()  # JSON is YAML


def _written(value: object) -> object:
    """Write a document as a person would: without what is left at its default."""
    match value:
        case msgspec.Struct():
            return {
                field.name: _written(found)
                for field in msgspec.structs.fields(value)
                if (found := getattr(value, field.name)) != field.default or field.required
            }
        case dict():
            return {name: _written(each) for name, each in value.items()}
        case list() | tuple():
            return [_written(each) for each in value]
        case plain:
            return plain


def _source_of(config: Config) -> str:
    return os.fspath(config) if isinstance(config, str | os.PathLike) else IN_PROGRAM
