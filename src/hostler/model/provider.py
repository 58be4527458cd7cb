"""What we remember about providers: when they were last listed, and what to leave alone."""

from __future__ import annotations

from typing import ClassVar

from hostler.model.record import Record


class ProviderState(Record, frozen=True, kw_only=True):
    """One provider in use, and its last complete list of our machines."""

    KIND: ClassVar[str] = "provider"

    name: str
    list_count: int = 0
    """Lists asked for so far; part of the command's id."""
    listed_at_ms: int | None = None
    """When a complete list last came in."""
    next_list_at_ms: int = 0
    absent_list_counts: dict[str, int] = {}
    """Machines that we know and lists missed, with how many in a row; one is not absence."""
    launch_next_at_ms: int | None = None
    """Before this nothing more is launched, where so many a minute are allowed and no more."""
    asked_about: tuple[str, ...] = ()
    """Those of them that were asked for by name since the last list."""

    absent_since_at_ms: dict[str, int] = {}
    """Since when lists have missed each of them."""
    unattributed_ms: int = 0
    """By the last list: time of machines that no record of ours stands for, and of records that no
    machine stands behind."""

    @property
    def key(self) -> str:
        """The provider's name."""
        return self.name


class Cooldown(Record, frozen=True, kw_only=True):
    """An offer that lately failed to launch and is left alone for a while."""

    KIND: ClassVar[str] = "cooldown"

    cooldown_id: str
    """`pool/tier/offer`."""
    failure_count: int
    """Failures in a row; the pause doubles with each, to a ceiling."""
    failed_at_ms: int
    """When it last failed."""
    until_at_ms: int
    is_over: bool = False
    """The pause has passed; the record stays a while, so that the next one is longer."""
    code: str
    """The failure's kind."""
    message: str

    @property
    def key(self) -> str:
        """The cooldown's id."""
        return self.cooldown_id
