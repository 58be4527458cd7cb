"""The server: one address, and behind it one life of a process after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from hostler.base.ids import MachineId, NodeId
from hostler.core.fleet import Fleet
from hostler.core.inputs import (
    AnyRequest,
    JoinAgent,
)
from hostler.core.replies import Accepted, Result
from hostler.engine.boundaries import Boundary
from hostler.model import Lease
from hostler.sim.life import ServerProcess
from hostler.sim.network import Connection, Network, Peer
from hostler.wire import agent as wire

if TYPE_CHECKING:
    from hostler.sim.checkers import Checkers
    from hostler.sim.cloud import Cloud
    from hostler.sim.disk import Disk
    from hostler.sim.world import World


class ServerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the server's host behaves."""

    down_ms: tuple[int, int] = (500, 20_000)
    """From the end of one life to the start of the next."""


class Server:
    """The server's address.

    Attributes:
        process: The life that runs, or `None` while it is down.
        clock_offset_ms: How wrong the wall clock of its host is.
        doomed_at: The next life-ending boundary, if any.
    """

    def __init__(
        self, world: World, disk: Disk, cloud: Cloud, checkers: Checkers, plan: ServerPlan
    ) -> None:
        self.world = world
        self.disk = disk
        self.cloud = cloud
        self.checkers = checkers
        self.plan = plan
        self.process: ServerProcess | None = None
        self.clock_offset_ms = 0
        self.clock_jumped_ms = 0
        """How far its wall clock has jumped in all, there and back."""
        self.doomed_at: Boundary | None = None
        self.life_count = 0
        self.rng = world.stream("server")

    def start(self) -> None:
        """Begin a life, unless one runs."""
        if self.process is not None:
            return
        self.life_count += 1
        self.world.log(f"server life {self.life_count} begins")
        process = ServerProcess(self, self.life_count)
        self.process = process
        process.guard(process.begin)

    def crash(self, why: str) -> None:
        """End the life that runs, at this instant, and begin another one in a while."""
        process, self.process = self.process, None
        if process is None:
            return
        self.world.log(f"server life {process.incarnation} ends: {why}")
        self.world.probe("server.crashed")
        process.is_dead = True
        self.disk.power_lost()
        process.links.close()
        self.world.after(self.rng.between(*self.plan.down_ms), self.start)

    def jump_clock(self, by_ms: int) -> None:
        """Set the wall clock of the server's host."""
        self.clock_offset_ms += by_ms
        self.clock_jumped_ms += abs(by_ms)
        self.world.log(f"server clock jumps by {by_ms}")
        if self.process is not None:
            self.process.clock_jumped()

    # -- what others may ask -----------------------------------------------------------------

    def submit(self, request: AnyRequest, answer: Callable[[Result | None], None]) -> None:
        """Take a request; a server that is down says nothing."""
        if self.process is not None:
            self.process.submit(request, answer)

    def join(self, request: wire.JoinRequest, answer: Callable[[str | None], None]) -> None:
        """Take a request to become a node."""
        process = self.process
        if process is None:
            return
        node_id = request.node_id
        asked = JoinAgent(
            request_id=process.request_id(),
            principal="agent",
            node_id=None if node_id is None else NodeId(node_id),
            pool=request.pool or "",
            tier=request.tier or "",
            machine_id=None if request.machine_id is None else MachineId(request.machine_id),
            hostname=request.hostname,
        )
        process.submit(
            asked,
            lambda result: answer(result.subject_id if isinstance(result, Accepted) else None),
        )

    def accept(self, network: Network, host: str, agent: Peer, node_id: str) -> Connection | None:
        """Take a connection of an agent."""
        process = self.process
        return None if process is None else process.links.accept(network, host, agent, node_id)

    def read_lease(self, lease_id: str, answer: Callable[[Lease | None], None]) -> None:
        """Answer with a lease as it is committed."""
        process = self.process
        if process is not None:
            process.when_readable(lambda: answer(process.fleet.leases.get(lease_id)))

    def read(self, reader: Callable[[Fleet], None]) -> None:
        """Let somebody read the committed fleet, if there is a server."""
        process = self.process
        if process is not None:
            process.when_readable(lambda: reader(process.fleet))

    def exec(self, lease_id: str, epoch: int, request_id: str) -> None:
        """Run a command under a lease, if it is held as its holder believes."""
        process = self.process
        if process is not None:
            process.when_readable(lambda: process.exec(lease_id, epoch, request_id))
