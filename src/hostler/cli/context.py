"""Which server a command talks to, and as whom.

A flag wins over the environment, the environment over the file `hostler/client.yaml` in
XDG_CONFIG_HOME, and that over the default: this machine, without a token. A token is never an
argument, since everybody on a machine can read those.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from hostler.cli.errors import CommandError, ExitCode

SERVER_VARIABLE: Final = "HOSTLER_SERVER"
TOKEN_VARIABLE: Final = "HOSTLER_TOKEN"
URL_DEFAULT: Final = "http://127.0.0.1:7464"
"""Where `hostler server` listens unless told otherwise."""

ServerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--server",
        "-s",
        metavar="URL",
        help=f"The server to talk to; else ${SERVER_VARIABLE}, else {URL_DEFAULT}.",
        show_default=False,
    ),
]
TokenFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help=f"A file with the token to use; else ${TOKEN_VARIABLE}.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Target:
    """A server and what it takes to talk to it.

    Attributes:
        url: Its address, without a slash at the end.
        token: Empty where none is needed.
        tls_ca: The authority that vouches for it; `None` for the system's.
    """

    url: str = URL_DEFAULT
    token: str = ""
    tls_ca: Path | None = None


def resolve(
    server: str | None, token_file: Path | None, environ: Mapping[str, str] = os.environ
) -> Target:
    """Find the server and the token.

    Raises:
        CommandError: The URL, the client's configuration or the token file is not usable.
    """
    target = _from_file(config_path(environ))
    if url := server or environ.get(SERVER_VARIABLE):
        target = replace(target, url=url)
    if token_file is not None:
        target = replace(target, token=read_token(token_file))
    elif token := environ.get(TOKEN_VARIABLE):
        target = replace(target, token=token.strip())
    return replace(target, url=_checked_url(target.url))


def config_path(environ: Mapping[str, str]) -> Path:
    """Return where the client's configuration would be."""
    folder = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME", "/"), ".config")
    return Path(folder, "hostler", "client.yaml")


def _from_file(path: Path) -> Target:
    """Read the client's configuration; without one everything is at its default."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return Target()
    from hostler.cli.client_config import read_client_config

    config = read_client_config(text, str(path))
    return Target(
        url=config.server,
        token=read_token(path.parent / config.token_file) if config.token_file else "",
        tls_ca=path.parent / config.tls_ca if config.tls_ca else None,
    )


def read_token(path: Path) -> str:
    """Read the secret of a token from a file.

    Raises:
        CommandError: It cannot be read, or nothing stands there.
    """
    try:
        token = path.expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = (getattr(error, "strerror", None) or "not text").lower()
        raise CommandError(
            f"cannot read the token file {path}: {why}", code=ExitCode.BAD_INPUT
        ) from error
    if not token:
        raise CommandError(f"the token file {path} is empty", code=ExitCode.BAD_INPUT)
    return token


def _checked_url(url: str) -> str:
    url = url if "://" in url else f"http://{url}"
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        has_place = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        has_place = False
    if not has_place or parts.scheme not in ("http", "https"):
        raise CommandError(
            f"{url} is not the URL of a server; it looks like {URL_DEFAULT}",
            code=ExitCode.BAD_INPUT,
        )
    return url.rstrip("/")
