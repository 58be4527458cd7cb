"""The audit: who changed what, from where, and who was refused; kept for a stated time."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final

from hostler.base.ids import numbered
from hostler.model.record import Record, Value

AUDIT_PREFIX: Final = "u"
"""Of the ids of entries, and the name of their counter."""


class AuditOutcome(StrEnum):
    """What became of it."""

    DONE = "done"
    """It was accepted, and changed something."""
    REFUSED = "refused"
    """Whoever asked may not do that, or is not known here."""


class Origin(Value, frozen=True, kw_only=True):
    """From where a request came."""

    token_id: str = ""
    """The token that was shown; empty where none was."""
    remote: str = ""
    """The address that the request came from, where it is known; a proxy's, behind a proxy."""


class AuditEntry(Record, frozen=True, kw_only=True):
    """One thing that somebody did, or was refused."""

    KIND: ClassVar[str] = "audit"

    number: int
    """Rises by one with each entry."""
    at_ms: int
    """When it was done; of a refusal, when it was written down."""
    principal: str
    """Who: the name of the token, `server` or `SIGHUP` for the process itself, `agent:ID` for an
    agent, `local` for whoever is on the machine of a server without tokens; empty for somebody
    unknown."""
    origin: Origin
    action: str
    """The request's name, `cordon_node`; of a refusal the method and the route."""
    about: dict[str, str]
    """Ids by noun, as events have them."""
    data: dict[str, str | int | bool | None] = {}
    """What was asked for, as far as it is one value; never a secret."""
    changed: tuple[str, ...] = ()
    """The records that were written, `node/n-000001`; the first few where they are many."""
    changed_count: int = 0
    outcome: AuditOutcome = AuditOutcome.DONE
    code: str = ""
    """Why it was refused."""
    count: int = 1
    """How often: refusals of one kind are written down together."""
    request_id: str = ""
    event_seq: int = 0
    """Position of the last event before it: what followed comes after that."""

    @property
    def key(self) -> str:
        """The entry's id, `u-000001`."""
        return numbered(AUDIT_PREFIX, self.number)
