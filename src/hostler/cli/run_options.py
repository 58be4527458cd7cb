"""Options of `hostler run` that are its own."""

from __future__ import annotations

from typing import Annotated

import typer

EnvOption = Annotated[
    list[str] | None,
    typer.Option("--env", "-e", metavar="NAME=VALUE", help="For the command; repeatable."),
]

CopyInOption = Annotated[
    list[str] | None,
    typer.Option(
        "--copy-in",
        metavar="HERE:THERE",
        help="Copy a file or folder to the node before; repeatable.",
    ),
]

CopyOutOption = Annotated[
    list[str] | None,
    typer.Option(
        "--copy-out",
        metavar="THERE:HERE",
        help="Copy a file or folder from the node afterwards; repeatable.",
    ),
]

StdinOption = Annotated[
    bool | None,
    typer.Option(
        "--stdin/--no-stdin",
        "-i/-I",
        help="Pass standard input on; by itself where that is not a terminal.",
        show_default=False,
    ),
]
