"""The client's configuration, `~/.config/hostler/client.yaml`: which server, and as whom."""

from __future__ import annotations

import msgspec
import yaml

from hostler.cli.context import URL_DEFAULT
from hostler.cli.errors import CommandError, ExitCode


class ClientConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file; everything may be left out. Paths are relative to it."""

    server: str = URL_DEFAULT
    token_file: str = ""
    tls_ca: str = ""
    """The authority that vouches for the server, as a PEM file."""


def read_client_config(text: str, source: str) -> ClientConfig:
    """Read the file.

    Raises:
        CommandError: It is not usable as it stands.
    """
    try:
        return msgspec.convert(yaml.safe_load(text) or {}, ClientConfig)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        why = str(error).replace("\n", " ")
        raise CommandError(f"{source}: {why}", code=ExitCode.BAD_INPUT) from error
