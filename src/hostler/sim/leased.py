"""Leased commands, as one life of an agent runs them; as strays they may outlive it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.agent.core.checks import FOLDER as READY_CHECK
from hostler.agent.core.inputs import ExecFinished, LeaseCleared, LeaseKey
from hostler.wire.agent import ExecStart

if TYPE_CHECKING:
    from hostler.sim.agent import AgentProcess


class LeasedCommands:
    """The leased commands of one life of an agent."""

    def __init__(self, agent: AgentProcess) -> None:
        self._agent = agent
        self._machine = agent.machine
        self._world = agent.machine.world
        self._cancelled: dict[str, None] = {}

    def start(self, start: ExecStart) -> None:
        """Run a command; it begins in a moment."""
        key = LeaseKey(start.lease_id, start.lease_epoch)
        self._machine.disk.lease_keys[key] = None
        self._world.after(self._machine.rng.between(1, 50), self._begin, start, key)

    def kill(self, request_id: str) -> None:
        """Kill a command; it ends in a moment."""
        self._cancelled[request_id] = None
        self._world.after(self._machine.rng.between(1, 50), self._finish, request_id, "SIGKILL")

    def clear(self, key: LeaseKey) -> None:
        """Kill whatever runs under a lease, strays too, and remove its folder."""
        self._world.after(self._machine.rng.between(1, 300), self._clear, key)

    def _begin(self, start: ExecStart, key: LeaseKey) -> None:
        agent, machine = self._agent, self._machine
        if agent.is_dead or agent.misses(lambda: self._begin(start, key)):
            return
        if key not in machine.disk.lease_keys or start.request_id in self._cancelled:
            agent.take(ExecFinished(request_id=start.request_id, error="cancelled"))
            return
        machine.begin_leased(start.request_id, key)
        lasts_ms = machine.rng.between(100, 90_000)
        is_check = key.lease_id == READY_CHECK
        is_failing = is_check and machine.rng.chance(machine.plan.check_fails_ppm)
        if is_failing:
            self._world.probe("machine.ready_check_failed")
        self._world.after(lasts_ms, self._finish, start.request_id, None, int(is_failing))

    def _finish(self, request_id: str, signal: str | None, exit_code: int = 0) -> None:
        if self._machine.end_leased(request_id) and not self._agent.is_dead:
            self._agent.take(
                ExecFinished(
                    request_id=request_id,
                    exit_code=exit_code if signal is None else None,
                    signal=signal,
                )
            )

    def _clear(self, key: LeaseKey) -> None:
        if self._agent.is_dead or self._agent.misses(lambda: self._clear(key)):
            return
        leased = self._machine.leased_by_request
        ended = [request_id for request_id, (owner, _) in leased.items() if owner == key]
        self._machine.clear_lease(key)
        self._agent.take(*(ExecFinished(request_id=each, signal="SIGKILL") for each in ended))
        self._agent.take(LeaseCleared(key=key))
