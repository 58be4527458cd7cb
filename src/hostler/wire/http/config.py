"""Reloading the configuration: what it would change, and what follows for the fleet."""

from __future__ import annotations

import msgspec


class ReloadRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks the server to read its configuration file again."""

    is_dry_run: bool = False
    """True: only say what would change."""
    digest: str = ""
    """Of the dry run that somebody has agreed to: another text is refused. Empty: any text."""


class ConfigChangeView(msgspec.Struct, frozen=True, kw_only=True):
    """One value of the file that differs from what is in force."""

    path: str
    before: str | None
    """`null`: it was not there."""
    after: str | None
    """`null`: it is there no more."""
    needs_restart: bool
    """The server goes on with the old value until it is started again."""


class ReloadEffectView(msgspec.Struct, frozen=True, kw_only=True):
    """What follows at once for so many things of a pool."""

    pool: str
    effect: str
    """`launched`, `retired`, `drained`, `replaced`, `undrained` of nodes; `refused`,
    `asked_to_leave` of leases."""
    count: int
    reason: str


class ReloadView(msgspec.Struct, frozen=True, kw_only=True):
    """What reading the file again has changed, or would change."""

    digest: str
    """Of the file's text; give it with the request that applies what a dry run has shown."""
    is_applied: bool
    """False: it was a dry run, or there was nothing to change."""
    changes: list[ConfigChangeView]
    effects: list[ReloadEffectView]
    """As of this moment; what follows later, such as replacing one by one, goes on by itself."""
