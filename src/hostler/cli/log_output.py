"""How servers and agents log: one line each on standard error, for people or for programs."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

from hostler.cli.terminal import is_colourful


class LogFormat(StrEnum):
    """How a line of the log looks."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


LogFormatOption: TypeAlias = Annotated[
    LogFormat,
    typer.Option(
        "--log-format",
        metavar="FORMAT",
        help="text, json, or auto: text on a terminal, json everywhere else.",
    ),
]
VerboseOption: TypeAlias = Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")]


def configure_logs(format_: LogFormat, *, is_verbose: bool) -> bool:
    """Send the logs of this process to standard error; say whether they are for people."""
    import logging

    import structlog

    is_text = format_ is LogFormat.TEXT or (format_ is LogFormat.AUTO and sys.stderr.isatty())
    renderer: structlog.typing.Processor
    if is_text:
        stamp = structlog.processors.TimeStamper("%H:%M:%S", utc=False)
        renderer = structlog.dev.ConsoleRenderer(
            colors=is_colourful(sys.stderr), pad_event_to=30, pad_level=False
        )
    else:
        stamp = structlog.processors.TimeStamper("iso")
        renderer = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            stamp,
            *([] if is_text else [structlog.processors.format_exc_info]),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.DEBUG if is_verbose else logging.INFO
        ),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if is_verbose else logging.WARNING,
        format="%(levelname)s %(name)s: %(message)s",
    )
    return is_text
