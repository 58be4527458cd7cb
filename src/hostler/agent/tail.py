"""The end of what a command writes, for those who want no more of it."""

from __future__ import annotations


class Tail:
    """Keeps the last bytes that it is given."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept = b""

    def add(self, data: bytes) -> None:
        """Take more in."""
        self._kept = (self._kept + data)[-self._bytes_max :]

    def text(self) -> str:
        """Return what is kept; what is no text shows as question marks."""
        return self._kept.decode(errors="replace")
