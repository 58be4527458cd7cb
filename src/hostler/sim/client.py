"""A client: asks until it has an answer, as people's programs do.

A request or its answer may get lost, so it is sent again; it may be sent twice at once. What keeps
that harmless is the product's business: idempotency keys, and requests that may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hostler.core.inputs import AnyRequest
from hostler.core.replies import Result
from hostler.model import Lease
from hostler.sim.network import Network
from hostler.sim.server import Server
from hostler.sim.world import World

PATIENCE_MS: Final = 5_000
"""Wait for an answer before asking again."""

ATTEMPTS_MAX: Final = 60

_DOUBLED_PPM: Final = 30_000

Make = Callable[[str], AnyRequest]
"""Makes the request, given the id of this attempt."""


class Client:
    """What workloads speak through."""

    def __init__(self, world: World, network: Network, server: Server) -> None:
        self.world = world
        self._network = network
        self._server = server
        self._count = 0
        self._rng = world.stream("client")

    def ask(
        self,
        make: Make,
        answered: Callable[[Result], None] | None = None,
        *,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        """Ask until there is an answer, or the attempts are used up."""
        self._count += 1
        _Asking(self, make, answered, f"c{self._count}", attempts_max).attempt()

    def send(self, request: AnyRequest, answered: Callable[[Result | None], None]) -> None:
        """Send a request once; both ways may get lost, and it may arrive twice."""
        count = 2 if self._rng.chance(0 if self.world.is_calm else _DOUBLED_PPM) else 1
        for _ in range(count):
            self._network.carry(
                lambda: self._server.submit(
                    request, lambda result: self._network.carry(lambda: answered(result))
                )
            )
            if count == 2:
                self.world.probe("client.doubled")

    def read_lease(self, lease_id: str, answered: Callable[[Lease | None], None]) -> None:
        """Read a lease; the answer may never come."""
        self._network.carry(
            lambda: self._server.read_lease(
                lease_id, lambda lease: self._network.carry(lambda: answered(lease))
            )
        )

    def exec(self, lease_id: str, epoch: int, request_id: str) -> None:
        """Have a command run under a lease; nobody waits for its end."""
        self._network.carry(lambda: self._server.exec(lease_id, epoch, request_id))


class _Asking:
    """One question until it is answered."""

    def __init__(
        self,
        client: Client,
        make: Make,
        answered: Callable[[Result], None] | None,
        name: str,
        attempts_max: int,
    ) -> None:
        self._client = client
        self._make = make
        self._answered = answered
        self._name = name
        self._attempts_left = attempts_max
        self._attempt_count = 0
        self._is_over = False

    def attempt(self) -> None:
        """Ask once more."""
        if self._is_over or self._attempts_left == 0:
            return
        self._attempts_left -= 1
        self._attempt_count += 1
        request = self._make(f"{self._name}.{self._attempt_count}")
        self._client.send(request, self._take)
        self._client.world.after(PATIENCE_MS, self._again, self._attempt_count)

    def _again(self, attempt_count: int) -> None:
        if attempt_count == self._attempt_count:
            self.attempt()

    def _take(self, result: Result | None) -> None:
        if result is None or self._is_over:
            return
        self._is_over = True
        if self._answered is not None:
            self._answered(result)
