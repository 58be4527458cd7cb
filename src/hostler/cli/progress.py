"""Waiting until bundles are ready, seen: a live table on a terminal, lines everywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from hostler.base.units import format_duration
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import table
from hostler.cli.remote import now_ms
from hostler.cli.tables import REPLICA_COLUMNS
from hostler.cli.terminal import is_colourful, note

if TYPE_CHECKING:
    from hostler.client import SyncClient
    from hostler.wire.http import ReplicaView

POLL_S: Final = 0.25
"""Between two looks: as often as a person can follow."""

_HOPELESS: Final = ("broken", "dropped")
_IDLE: Final = ("dormant",)
"""Not meant to run until somebody starts it."""

Shows = Callable[[Sequence["ReplicaView"]], None]


def wait_ready(client: SyncClient, bundle_ids: Sequence[str], timeout_ms: int) -> None:
    """Return when every replica of the bundles is ready.

    Raises:
        CommandError: Some are not in time, or will not be without help.
    """
    ends_at_ms = now_ms() + timeout_ms
    began_at_ms = now_ms()
    with _shown() as show:
        while True:
            replicas = [one for name in bundle_ids for one in client.replicas(bundle=name)]
            show(replicas)
            waited_for = [one for one in replicas if not _is_settled(one)]
            if not waited_for:
                break
            hopeless = [one for one in waited_for if one.phase in _HOPELESS]
            if hopeless:
                raise _not_ready(hopeless, f"{hopeless[0].replica_id} is {hopeless[0].phase}")
            if now_ms() > ends_at_ms:
                told = format_duration(timeout_ms)
                raise _not_ready(waited_for, f"not ready within {told}")
            time.sleep(POLL_S)
    note(f"all ready after {format_duration(now_ms() - began_at_ms)}")


def _is_settled(replica: ReplicaView) -> bool:
    return replica.allocation_phase == "ready" or replica.phase in _IDLE


def _not_ready(replicas: Sequence[ReplicaView], why: str) -> CommandError:
    details = [f"{one.replica_id}: {_state(one)}" for one in replicas]
    return CommandError(
        why,
        code=ExitCode.FAILED,
        hint=f"`hostler explain {replicas[0].replica_id}` says more",
        details=details,
    )


def _state(replica: ReplicaView) -> str:
    state = replica.allocation_phase or replica.phase
    where = f" on {replica.node_id}" if replica.node_id else ""
    waits = f", waits for {replica.reason}" if replica.reason else ""
    detail = f": {replica.reason_detail}" if replica.reason and replica.reason_detail else ""
    return f"{state}{where}{waits}{detail}"


@contextmanager
def _shown() -> Iterator[Shows]:
    if not sys.stderr.isatty():
        yield _Lines().show
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    is_colour = is_colourful(sys.stderr)
    console = Console(stderr=True, no_color=not is_colour, highlight=False)
    with Live(console=console, auto_refresh=False, transient=False) as live:

        def show(replicas: Sequence[ReplicaView]) -> None:
            lines = table(replicas, REPLICA_COLUMNS, now_ms=now_ms(), is_colour=is_colour)
            live.update(Text.from_ansi("\n".join(lines)), refresh=True)

        yield show


class _Lines:
    """Tells each replica's state when it changes."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def show(self, replicas: Sequence[ReplicaView]) -> None:
        for one in replicas:
            state = _state(one)
            if self._told.get(one.replica_id) != state:
                self._told[one.replica_id] = state
                note(f"{one.replica_id}: {state}")
