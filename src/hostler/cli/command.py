"""Registering commands: what all of them share is said here once.

A command is a function whose docstring is its help. `command` adds examples and lets its errors be
told in one place; `remote` gives it `--server` and `--token-file`, and hands it the connection.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, get_type_hints

import typer

from hostler.cli.context import ServerOption, TokenFileOption, resolve
from hostler.cli.errors import guarded
from hostler.cli.remote import Remote

P = ParamSpec("P")
R = TypeVar("R")

SETTINGS: Final = {"help_option_names": ["-h", "--help"]}
"""Of every command and group."""


def group(help_text: str) -> typer.Typer:
    """Make a group of commands, such as `hostler lease`."""
    return typer.Typer(
        help=help_text,
        no_args_is_help=True,
        add_completion=False,
        context_settings=SETTINGS,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )


def command(
    app: typer.Typer, name: str, *, examples: str, panel: str | None = None, **settings: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register a function as a command.

    Args:
        app: Where it goes.
        name: What people type.
        examples: One a line, shown at the end of its help.
        panel: The heading under which `hostler --help` lists it.
        settings: More of Click's context settings.
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        app.command(
            name,
            help=_unwrapped(function.__doc__ or ""),
            epilog=_examples(examples),
            rich_help_panel=panel,
            context_settings={**SETTINGS, **settings},
            no_args_is_help=False,
        )(guarded(function))
        return function

    return register


def _unwrapped(text: str) -> str:
    """Join the lines of each paragraph, so that terminals of any width wrap them well."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.splitlines()) for paragraph in paragraphs)


def _examples(text: str) -> str:
    return "\n".join(
        ["Examples:", *(f"  $ {line}" for line in inspect.cleandoc(text).splitlines())]
    )


def remote(function: Callable[Concatenate[Remote, P], R]) -> Callable[P, R]:
    """Give a command the options that say which server, and the connection to it."""
    hints = get_type_hints(function, include_extras=True)
    own = list(inspect.signature(function).parameters.values())[1:]
    kept = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in (("server", ServerOption), ("token_file", TokenFileOption))
    ]

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        given: dict[str, Any] = dict(kwargs)
        target = resolve(given.pop("server", None), given.pop("token_file", None))
        with Remote(target) as connection:
            return function(connection, *args, **given)

    parameters = [*kept, *shared]
    # Typer reads these instead of the function's own.
    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # PEP 362 allows it on any function
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
