"""The audit: who changed what, from where, and who was refused."""

from __future__ import annotations

import msgspec


class AuditView(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that somebody did, or was refused."""

    audit_id: str
    """Rises with each entry; `after` takes it."""
    at_ms: int
    principal: str
    """Who: a token's name, `server` or `SIGHUP` for the process itself, `agent:ID`, `local` for
    whoever is on the machine of a server without tokens; empty for somebody unknown."""
    token_id: str
    """The token that was shown; empty where none was."""
    remote: str
    """The address that it came from, where it is known."""
    action: str
    """What was asked for, `cordon_node`; of a refusal the method and the route."""
    about: dict[str, str]
    """Ids by noun: `node`, `pool`, `bundle`, `replica`, `lease`, `token`."""
    data: dict[str, str | int | bool | None]
    """With what values; never a secret."""
    changed: list[str]
    """The records that were written, `node/n-000001`: the first few where they are many."""
    changed_count: int
    outcome: str
    """`done` or `refused`."""
    code: str
    """Why it was refused."""
    count: int
    """How often: refusals of one kind are written down together."""
    request_id: str
    """By which the journal knows it."""
    event_seq: int
    """Position of the last event before it: what followed comes after that."""
