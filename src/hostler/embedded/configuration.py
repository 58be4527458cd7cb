"""The configuration of an embedded fleet: a file, or values that the program has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from hostler.api.configuration import Configuration, ConfigurationFile, Text
from hostler.wire.documents import ConfigDocument

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
        return text_of(self._config).text

    def closing(self, notice_ms: int) -> Text:
        """Write what is in force with every pool disabled, and leases left so much time."""
        values = msgspec.to_builtins(self.document)
        for pool in values["pools"].values():
            pool |= {"enabled": False, "retire_notice": f"{notice_ms}ms"}
        return text_of(values)


def text_of(config: Config) -> Text:
    """Write a configuration out, or read its file.

    Raises:
        Rejected: It is a file that cannot be read.
    """
    source = _source_of(config)
    match config:
        case str() | os.PathLike():
            return Text(ConfigurationFile(Path(config), ConfigDocument()).read(), source)
        case values:
            return Text(msgspec.json.encode(values).decode(), source)  # JSON is YAML


def _source_of(config: Config) -> str:
    return os.fspath(config) if isinstance(config, str | os.PathLike) else IN_PROGRAM
