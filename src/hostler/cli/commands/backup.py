"""`hostler backup`: a whole copy of a server's data folder, also while the server runs."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated, Final

import typer

from hostler.cli import panels
from hostler.cli.command import command
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.terminal import note, say

DATABASE: Final = "hostler.db"
KEY: Final = "server.key"
COPIED: Final = ("counter", "copied", b'{"name":"copied","value":1}')
"""The record by which a store is known to be a copy (`hostler.model.record.COPIED`)."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "backup",
        panel=panels.SETTINGS,
        examples="""
        hostler backup /backups --data /var/lib/hostler
        """,
    )(backup)


def backup(
    target: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the copy goes, as a folder of its own.")
    ],
    data: Annotated[
        Path, typer.Option("--data", metavar="FOLDER", help="The server's data folder.")
    ],
) -> None:
    """Copy a server's database and key, whole and of one instant, while it runs.

    The copy is a data folder: start a server on it with `hostler server --data`. It holds the
    server's key, so keep it as safe as the original.
    """
    database, key = data / DATABASE, data / KEY
    for file in (database, key):
        if not file.is_file():
            raise CommandError(
                f"{file} is not there: is {data} the data folder of a server?",
                code=ExitCode.NOT_FOUND,
            )
    made = target / time.strftime("hostler-%Y%m%dT%H%M%SZ", time.gmtime())
    try:
        made.mkdir(mode=0o700, parents=True)
        _copy_database(database, made / DATABASE)
        with os.fdopen(os.open(made / KEY, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as out:
            out.write(key.read_bytes())
            os.fsync(out.fileno())
    except (OSError, sqlite3.Error) as error:
        shutil.rmtree(made, ignore_errors=True)
        why = str(getattr(error, "strerror", None) or error).lower()
        raise CommandError(f"cannot copy {data} to {made}: {why}", code=ExitCode.FAILED) from error
    note(f"copied {database.stat().st_size // 1024} KiB and the key")
    say(str(made))


def _copy_database(source: Path, target: Path) -> None:
    """Copy an open database as of one commit, and check the copy."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT, 0o600))
    uri = f"{source.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as whole, closing(sqlite3.connect(target)) as copy:
        whole.backup(copy)
        (verdict,) = copy.execute("PRAGMA integrity_check").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(f"the copy is damaged: {verdict}")
        # A server that starts on it gives out no id that the original may give out from now on.
        copy.execute("INSERT OR REPLACE INTO records (kind, key, body) VALUES (?, ?, ?)", COPIED)
        copy.commit()
