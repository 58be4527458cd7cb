"""`hostler completion` and `hostler version`: what a shell wants to know."""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import Annotated, Final

import typer

from hostler.cli import panels
from hostler.cli.command import command
from hostler.cli.terminal import say

COMPLETE_VARIABLE: Final = "_HOSTLER_COMPLETE"
"""Set by the script when it asks for candidates."""


def prepare_completion() -> None:
    """Let Typer know its shells; it does so by itself only with options that we do not want."""
    completion = importlib.import_module("typer.completion")
    completion.completion_init()


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def register(app: typer.Typer) -> None:
    """Add the commands."""

    @command(
        app,
        "completion",
        panel=panels.PROGRAM,
        examples="""
        source <(hostler completion bash)
        hostler completion zsh > ~/.zfunc/_hostler
        hostler completion fish > ~/.config/fish/completions/hostler.fish
        """,
    )
    def completion(
        shell: Annotated[Shell, typer.Argument(help="Which shell.")] = Shell.BASH,
    ) -> None:
        """Print the script with which a shell completes commands and options."""
        from typer.completion import shell_complete
        from typer.main import get_command

        prepare_completion()
        shell_complete(get_command(app), {}, "hostler", COMPLETE_VARIABLE, f"source_{shell}")

    @command(app, "version", panel=panels.PROGRAM, examples="hostler version")
    def version() -> None:
        """Print the version of this program."""
        from hostler import __version__

        say(__version__)
