"""What is remembered of a pool's growth: the sizes that it has now, and boots that failed."""

from __future__ import annotations

from typing import ClassVar

from hostler.model.record import Record, Value


class Sizes(Record, frozen=True, kw_only=True):
    """The calendar's word on a pool, written down. A pool without windows has no such record."""

    KIND: ClassVar[str] = "sizes"

    pool: str
    warm_count: int
    node_count_min: int
    node_count_max: int | None
    windows: tuple[str, ...] = ()
    """The windows that hold, or are prepared for, in the pool's order."""
    until_at_ms: int | None = None
    """When the calendar is looked at again; `None` if nothing changes any more."""

    @property
    def key(self) -> str:
        """The pool's name."""
        return self.pool


class BootFailure(Value, frozen=True, kw_only=True):
    """What is known of one machine that was launched and never became ready."""

    node_id: str
    offer: str
    at_ms: int
    code: str
    message: str


class Breaker(Record, frozen=True, kw_only=True):
    """Machines of a tier that failed to boot, one after another. Gone when one has come.

    Where the platform has no room, or does not let us, is not counted here: such a pause passes by
    itself. This is about machines that exist, cost money, and are of no use.
    """

    KIND: ClassVar[str] = "breaker"

    breaker_id: str
    """`pool/tier`."""
    failure_count: int
    failures: tuple[BootFailure, ...] = ()
    """The latest ones, newest last: the evidence."""
    stopped_at_ms: int | None = None
    """Since when nothing but a trial now and then is launched; `None`: not stopped."""
    trial_at_ms: int | None = None
    """When one machine may be tried again."""

    @property
    def key(self) -> str:
        """The pool's name and the tier's."""
        return self.breaker_id
