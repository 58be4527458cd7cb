"""Ready checks, as they are written in `hostler.yaml`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hostler.wire.documents.text import CountFromOne, Duration
from hostler.wire.documents.work import Document


class HttpReadyDocument(Document, frozen=True, kw_only=True):
    """A page that must answer with a status from 200 to 399."""

    port: Annotated[int, Meta(ge=1, le=65_535)]
    path: Annotated[str, Meta(pattern=r"^/[!-~]*$")] = "/"


class ReadyDocument(Document, frozen=True, kw_only=True):
    """What a new node must pass before work is put on it: one of `command`, `tcp`, `http`."""

    command: list[Annotated[str, Meta(min_length=1)]] = []
    """Passes with exit code 0; an argument vector."""
    tcp: Annotated[int, Meta(ge=1, le=65_535)] | None = None
    """A port of the node that must accept connections, on its loopback address."""
    http: HttpReadyDocument | None = None
    """The same for a page."""
    interval: Duration = "2s"
    """Between the end of one try and the next."""
    timeout: Duration = "10s"
    """How long one try may take."""
    deadline: Duration = "5m"
    """How long after its agent's report a launched machine may take; then its boot has failed."""
    successes: CountFromOne = 1
    """Tries in a row that must pass."""
