"""Log streams: sends a job's log to whoever asked for it, as fast as it is read there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hostler.agent.core.effects import OpenLogs
from hostler.agent.core.inputs import Input, LogsFinished
from hostler.agent.credit import CreditGate
from hostler.agent.folder import DataFolder
from hostler.agent.logs import read_log
from hostler.agent.runtime import supervised
from hostler.agent.tasks import Tasks
from hostler.wire.agent import AgentMessage, LogChunk


class LogStreams:
    """All log streams of one agent."""

    def __init__(
        self,
        data: DataFolder,
        post: Callable[[Input], None],
        send: Callable[[AgentMessage], None],
        tasks: Tasks,
    ) -> None:
        self._data = data
        self._post = post
        self._send = send
        self._gates: dict[str, CreditGate] = {}
        self._all_tasks = tasks
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def open(self, opening: OpenLogs) -> None:
        """Begin to send a log."""
        self._gates[opening.request_id] = CreditGate()
        self._tasks[opening.request_id] = self._all_tasks.start(self._copy(opening))

    def credit(self, request_id: str, bytes_count: int) -> None:
        """Give a stream room."""
        gate = self._gates.get(request_id)
        if gate is not None:
            gate.credited(bytes_count)

    def close_one(self, request_id: str) -> None:
        """Stop sending a log."""
        task = self._tasks.get(request_id)
        if task is not None:
            task.cancel()

    async def _copy(self, opening: OpenLogs) -> None:
        folder = self._data.allocation(opening.key)
        request_id = opening.request_id
        offset = 0
        error: str | None = None

        def has_ended() -> bool:
            state = supervised.read_state(folder)
            # A folder that was removed will not say anything any more.
            return not folder.exists() or (state is not None and state.end is not None)

        try:
            async for data in read_log(
                folder,
                tail_bytes=opening.tail_bytes,
                is_followed=opening.is_followed,
                has_ended=has_ended,
                gate=self._gates[request_id],
            ):
                self._send(LogChunk(request_id=request_id, data=data, offset=offset))
                offset += len(data)
        except OSError as failure:
            error = f"log_unreadable: {failure.strerror}"
        except asyncio.CancelledError:
            error = "cancelled"
            raise
        finally:
            del self._gates[request_id], self._tasks[request_id]
            self._post(LogsFinished(request_id=request_id, error=error))
