"""The engine's face: what the API, the simulator and an embedding program may do with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hostler.core.events import Event
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyInput, Request
from hostler.core.replies import Result
from hostler.engine.publish import Subscription
from hostler.model.command import Command
from hostler.model.record import Record
from hostler.ports.agents import AgentGateway

T = TypeVar("T")


@dataclass(frozen=True)
class DryRun:
    """What a step would have done, had it been made.

    Attributes:
        revision: The fleet's revision that the answer is about.
        results: The answer to each request, by request id.
        changes: The new value of each record that would change, `None` for removed.
        commands: What would have been sent, by command id.
    """

    revision: int
    results: dict[str, Result]
    changes: dict[tuple[str, str], Record | None]
    events: Sequence[Event]
    commands: dict[str, Command]


class Engine:
    """One running control plane. Built by `hostler.engine.assemble.assemble`."""

    def attach(self, agents: AgentGateway) -> None:
        """Tell the engine who reaches agents; before `start`. Without it nobody is reached."""
        raise NotImplementedError

    async def start(self) -> None:
        """Recover from the store, claim it, and begin to work.

        Raises:
            StoreRefused: The store cannot be used as it stands; tell the operator.
        """
        raise NotImplementedError

    async def stop(self) -> None:
        """Finish the step under way, settle nothing more, close store and providers."""
        raise NotImplementedError

    async def wait_stopped(self) -> None:
        """Return when the engine has been stopped.

        Raises:
            Defect: It stopped itself; the process must exit, and the restart recovers.
            Failed: It lost its leadership, or the store for good; likewise.
        """
        raise NotImplementedError

    async def submit(self, request: Request) -> Result:
        """Return the answer to a request, once it is durable. `request_id` must be new.

        Raises:
            Failed: Not accepted (`overloaded`, `store_full`, `engine_stopped`, ...): the effect is
                none, except where the error says that it is unknown.
        """
        raise NotImplementedError

    async def observe(self, *inputs: AnyInput) -> None:
        """Take note of what was seen; returns when there is room for it, before it is durable.

        Raises:
            Failed: The engine has stopped.
        """
        raise NotImplementedError

    async def read(self, reader: Callable[[Fleet], T]) -> T:
        """Run a reader on the committed fleet, between two steps. It must neither wait nor write."""
        raise NotImplementedError

    async def dry_run(self, *inputs: AnyInput) -> DryRun:
        """Say what would follow from these inputs now, without doing it."""
        raise NotImplementedError

    def subscribe(self, after_seq: int | None = None) -> Subscription:
        """Follow committed events after a position; `None`: from now on.

        A snapshot and the stream join without a gap: take `fleet.event_seq` in the same `read` as
        the snapshot, and subscribe after it.
        """
        raise NotImplementedError

    async def watch(
        self,
        kind: str,
        key: str,
        until: Callable[[Record | None], bool],
        timeout_ms: int,
    ) -> Record | None:
        """Return a record as soon as its committed value is as wanted, else as it is at the timeout.

        Costs nothing while nothing changes; `until` sees `None` for a record that is not there.
        """
        raise NotImplementedError

    async def check(self) -> None:
        """Return if the engine works and its store answers: the readiness probe.

        Raises:
            HostlerError: It does not, and the message says why.
        """
        raise NotImplementedError
