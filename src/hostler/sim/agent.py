"""An agent's process: the real agent core, with a shell made of the world.

It joins, connects, greets and resumes as the real one does, and carries effects out in order. It
may be killed between any two of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hostler.agent.core.inputs import (
    AllocationKey,
    Input,
    LinkClosed,
    LinkOpened,
    MessageReceived,
    ProcessSeen,
    ProcessView,
    SessionLost,
    Started,
    SupervisorLost,
)
from hostler.agent.core.state import AgentSettings, AgentState
from hostler.agent.core.step import step
from hostler.sim.effects import carry_out
from hostler.sim.leased import LeasedCommands
from hostler.sim.network import Connection
from hostler.wire.agent import AgentMessage, Hello, JoinRequest, StartAllocation, Welcome
from hostler.wire.link import (
    LinkBroken,
    LinkOverflow,
    LinkSession,
    decode_opening_from_server,
    opening_frame,
)

if TYPE_CHECKING:
    from hostler.sim.machine import Machine

_RETRY_MS = (500, 5_000)
"""Pause between attempts to join or connect."""

_JOIN_TIMEOUT_MS = 10_000


class AgentProcess:
    """One life of an agent.

    Attributes:
        is_dead: It does nothing any more.
        dies_after_effects: When set, it is killed after that many more effects.
    """

    def __init__(self, machine: Machine, incarnation: int) -> None:
        self.machine = machine
        self.incarnation = incarnation
        self.is_dead = False
        self.dies_after_effects: int | None = None
        self._state: AgentState | None = None
        self._found: Started | None = None
        self._connection: Connection | None = None
        self._session: LinkSession | None = None
        self._is_greeted = False
        self._is_final = False
        self._wake_at_ms: int | None = None
        self._join_count = 0
        self.leased = LeasedCommands(self)
        self._missed: list[Callable[[], None]] | None = None
        """What came in while it stood still, in order; `None` while it runs."""

    @property
    def is_connected(self) -> bool:
        """A connection stands and has been welcomed."""
        return self._connection is not None and self._is_greeted

    @property
    def connection(self) -> Connection | None:
        """The connection that it believes in."""
        return self._connection

    def die(self) -> None:
        """Be killed."""
        self.is_dead = True
        if self._connection is not None:
            # The kernel closes what a dead process had open; a dead machine says nothing.
            if self.machine.is_on:
                self._connection.close_by_agent()
            else:
                self._connection.break_off()
            self._connection = None

    def pause(self, pause_ms: int) -> None:
        """Stand still for a while; then take in what has come meanwhile, in its order."""
        if self._missed is None and not self.is_dead:
            self._missed = []
            self.machine.world.log(f"agent {self.machine.machine_id} stands still for {pause_ms}")
            self.machine.world.after(pause_ms, self._go_on)

    def _go_on(self) -> None:
        missed, self._missed = self._missed or [], None
        for call in missed:
            call()

    def misses(self, call: Callable[[], None]) -> bool:
        """Put off what cannot be taken in now; say whether that was so."""
        if self._missed is None:
            return False
        self._missed.append(call)
        return True

    # -- joining and connecting --------------------------------------------------------------

    def begin(self, found: Started) -> None:
        """Begin the life: join if this machine is no node yet, else go on as that node."""
        self._found = found
        self.machine.world.log(f"agent {self.machine.machine_id}#{self.incarnation} begins")
        if self.machine.disk.node_id is None:
            self._join()
        else:
            self._start(self.machine.disk.node_id)

    def _join(self) -> None:
        if self.is_dead or self._state is not None:
            return
        self._join_count += 1
        machine, number = self.machine, self._join_count
        request = JoinRequest(
            hostname=machine.machine_id,
            machine_id=machine.machine_id,
            node_id=machine.enrolment.node_id,
            pool=machine.enrolment.pool or None,
            tier=machine.enrolment.tier or None,
        )
        if not machine.network.is_cut_at_all(machine.machine_id):
            machine.network.carry(lambda: machine.gateway.join(request, self._join_answered))
        machine.world.after(_JOIN_TIMEOUT_MS, self._join_again, number)

    def _join_again(self, number: int) -> None:
        if number == self._join_count:
            self._join()

    def _join_answered(self, node_id: str | None) -> None:
        network = self.machine.network
        if not network.is_cut_at_all(self.machine.machine_id):
            network.carry(lambda: self._joined(node_id))

    def _joined(self, node_id: str | None) -> None:
        if self.is_dead or self._state is not None or node_id is None:
            return
        self.machine.disk.node_id = node_id
        self._start(node_id)

    def _start(self, node_id: str) -> None:
        self._state = AgentState(
            settings=AgentSettings(
                agent_version="sim",
                node_id=node_id,
                machine_id=self.machine.machine_id,
                incarnation=self.incarnation,
                ended_keep_ms=120_000,
            )
        )
        # What was found is read again: jobs may have ended while the join was under way.
        self.take(self.machine.found())
        self._connect()

    def _connect(self) -> None:
        machine = self.machine
        state = self._state
        if self.is_dead or self._is_final or self._connection is not None or state is None:
            return
        if machine.network.is_cut_at_all(machine.machine_id):
            self._connect_later()
            return
        machine.world.after(machine.network.delay_ms(), self._connected)

    def _connected(self) -> None:
        machine, state = self.machine, self._state
        if self.is_dead or self._connection is not None or state is None:
            return
        if self.misses(self._connected):
            return
        connection = machine.gateway.accept(
            machine.network, machine.machine_id, self, state.settings.node_id
        )
        if connection is None:
            self._connect_later()
            return
        self._connection = connection
        self._is_greeted = False
        session = self._session
        self.take(
            LinkOpened(
                session_id=None if session is None else session.session_id,
                received_seq=0 if session is None else session.received_seq,
            )
        )

    def _connect_later(self) -> None:
        self.machine.world.after(self.machine.rng.between(*_RETRY_MS), self._connect)

    def end_connection(self, *, is_final: bool) -> None:
        """Close the connection and, unless that is final, make another."""
        self._is_final |= is_final
        self._drop_connection()

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close_by_agent()
            self.soon(LinkClosed())
        if not self._is_final:
            self._connect_later()

    # -- the peer of a connection ------------------------------------------------------------

    def frame_came(self, connection: Connection, text: str) -> None:
        """Take a frame from the server."""
        if self.is_dead or connection is not self._connection:
            return
        if self.misses(lambda: self.frame_came(connection, text)):
            return
        try:
            self._take_frame(connection, text)
        except LinkBroken:
            self.machine.world.probe("agent.link_broken")
            self._session = None
            self._drop_connection()

    def _take_frame(self, connection: Connection, text: str) -> None:
        if not self._is_greeted:
            opening = decode_opening_from_server(text)
            if isinstance(opening, Welcome):
                self._welcomed(connection, opening)
            if opening is not None:
                self.take(MessageReceived(message=opening))
            return
        session = self._session
        if session is not None:
            message = session.receive_from_server(text)
            if isinstance(message, StartAllocation) and self.machine.rejects_starts:
                # A launch that cannot be is what the core refuses by itself.
                message = replace(message, launch=replace(message.launch, argv=[]))
            if message is not None:
                self.take(MessageReceived(message=message))
            due = session.ack_due()
            if due is not None:
                connection.send_to_server(due)

    def _welcomed(self, connection: Connection, welcome: Welcome) -> None:
        self._is_greeted = True
        session = self._session
        if session is not None and session.session_id == welcome.session_id:
            self.machine.world.probe("link.resumed")
            for frame in session.resume(welcome.received_seq):
                connection.send_to_server(frame)
        else:
            self._session = LinkSession(welcome.session_id)

    def send(self, message: AgentMessage) -> None:
        """Give a message to the session; a hello goes out on the open connection."""
        if isinstance(message, Hello):
            if self._connection is not None:
                self._connection.send_to_server(opening_frame(message))
            return
        if self._session is None:
            return
        try:
            frame = self._session.send(message)
        except LinkOverflow:
            self.machine.world.probe("agent.link_overflow")
            self._session = None
            self.soon(SessionLost())
            return
        if self._connection is not None and self._is_greeted:
            self._connection.send_to_server(frame)

    def connection_closed(self, connection: Connection) -> None:
        """Learn that the connection is gone."""
        if self.is_dead or connection is not self._connection:
            return
        if self.misses(lambda: self.connection_closed(connection)):
            return
        self._connection = None
        self.take(LinkClosed())
        self._connect_later()

    # -- the core ----------------------------------------------------------------------------

    def take(self, *inputs: Input) -> None:
        """Run one step of the core and carry out what it wants."""
        if self.is_dead or self._state is None or self.misses(lambda: self.take(*inputs)):
            return
        answer = step(self._state, inputs, self.machine.clock_ms())
        for effect in answer.effects:
            if self._has_died():
                return
            if self.dies_after_effects is not None:
                self.dies_after_effects -= 1
                if self.dies_after_effects < 0:
                    self.machine.world.probe("agent.crashed_between_effects")
                    self.machine.crash_agent()
                    return
            carry_out(self, effect)
        self._wake_at(answer.next_wake_at_ms)

    def _has_died(self) -> bool:
        """Say whether an effect has ended this life."""
        return self.is_dead

    def soon(self, *inputs: Input, delay_ms: int = 0) -> None:
        """Let the core know of something in a while."""
        self.machine.world.after(delay_ms, self.take, *inputs)

    def _wake_at(self, at_ms: int | None) -> None:
        if at_ms is None or (self._wake_at_ms is not None and self._wake_at_ms <= at_ms):
            return
        self._wake_at_ms = at_ms
        self.machine.world.after(at_ms - self.machine.clock_ms(), self._woken, at_ms)

    def _woken(self, at_ms: int) -> None:
        if self._wake_at_ms == at_ms:
            self._wake_at_ms = None
            self.take()

    def supervisor_wrote(self, key: AllocationKey, view: ProcessView) -> None:
        """See a supervisor's state a moment later, as it is then: it is a file that is read."""
        delay_ms = self.machine.rng.between(0, 100)
        self.machine.world.after(delay_ms, self._read_state, key, view)

    def _read_state(self, key: AllocationKey, written: ProcessView) -> None:
        folder = self.machine.disk.folder_by_key.get(key)
        latest = None if folder is None else folder.process
        self.take(ProcessSeen(key=key, process=latest or written))

    def supervisor_died(self, key: AllocationKey) -> None:
        """Notice that a supervisor is gone, a while later."""
        self.machine.world.after(self.machine.rng.between(10, 1_000), self.lose, key)

    def lose(self, key: AllocationKey) -> None:
        """Give up a job whose supervisor is gone, as the real shell does."""
        if not self.is_dead and not self.misses(lambda: self.lose(key)):
            self.machine.unmake_start(key)
            self.take(SupervisorLost(key=key))
