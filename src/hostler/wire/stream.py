"""Back-pressure of one direction of one stream, as arithmetic.

The sender asks its `SendWindow` how much it may send; the receiver tells its `ReceiveWindow` what
its reader has taken and is told when a `StreamCredit` is worth a message. A reader that stops
reading thereby stops the writer, and nobody holds more than a window of it in memory.
"""

from __future__ import annotations

from hostler.wire.agent import STREAM_CHUNK_BYTES_MAX, STREAM_WINDOW_BYTES


class SendWindow:
    """Room that the sender has left."""

    def __init__(self, window_bytes: int = STREAM_WINDOW_BYTES) -> None:
        self.room_bytes = window_bytes

    def chunk_bytes(self) -> int:
        """How many bytes may go into the next message; 0 means wait for credit."""
        return max(0, min(self.room_bytes, STREAM_CHUNK_BYTES_MAX))

    def sent(self, bytes_count: int) -> None:
        """Take room for data that was sent."""
        self.room_bytes -= bytes_count

    def credited(self, bytes_count: int) -> None:
        """Give back the room that a `StreamCredit` brought."""
        self.room_bytes += bytes_count


class ReceiveWindow:
    """What the receiver owes its sender."""

    def __init__(self, window_bytes: int = STREAM_WINDOW_BYTES) -> None:
        self._worth_bytes = window_bytes // 4
        self._taken_bytes = 0

    def taken(self, bytes_count: int) -> int:
        """Count data that the reader took; give the credit to send now, or 0 to wait for more."""
        self._taken_bytes += bytes_count
        if self._taken_bytes < self._worth_bytes:
            return 0
        due_bytes, self._taken_bytes = self._taken_bytes, 0
        return due_bytes
