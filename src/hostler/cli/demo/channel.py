"""Watching a stream as a viewer would: which segments are there, and is one missing.

The folder of an allocation outlives its encoder for a while, so what a copy has put on air can be
counted after it was killed.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from datetime import datetime
from glob import glob
from pathlib import Path

PLAYLIST = "channel.m3u8"
_SEGMENT = re.compile(r"segment-(\d+)\.ts")
_STAMP = "#EXT-X-PROGRAM-DATE-TIME:"
_LENGTH = re.compile(r"#EXTINF:([0-9.]+)")


@dataclass(frozen=True)
class Segment:
    """One segment of the playlist."""

    number: int
    at_ms: int
    """When its first picture was made, milliseconds since 1970 UTC."""
    length_ms: int


def find_stream(root: Path, allocation_id: str) -> Path | None:
    """Return the folder into which an allocation writes its stream, or `None` when none is yet."""
    found = sorted(glob(f"**/{allocation_id}*/**/{PLAYLIST}", root_dir=root, recursive=True))
    return (root / found[0]).parent if found else None


def read_playlist(folder: Path) -> list[Segment]:
    """Return every whole segment that the playlist names, in order; empty before the first."""
    try:
        text = (folder / PLAYLIST).read_text()
    except FileNotFoundError:
        return []
    segments: list[Segment] = []
    at_ms = length_ms = 0
    for line in text.splitlines():
        if line.startswith(_STAMP):
            at_ms = int(datetime.fromisoformat(line.removeprefix(_STAMP)).timestamp() * 1_000)
        elif length := _LENGTH.match(line):
            length_ms = round(float(length[1]) * 1_000)
        elif name := _SEGMENT.fullmatch(line):
            segments.append(Segment(number=int(name[1]), at_ms=at_ms, length_ms=length_ms))
    return segments


def count_lost(segments: list[Segment]) -> int:
    """Return how many segments a viewer of this copy has missed.

    A number that was skipped is lost; so is each segment's length of time between the end of one
    and the beginning of the next, for an encoder that stood still numbers on without a gap.
    """
    lost = 0
    for before, after in itertools.pairwise(segments):
        lost += after.number - before.number - 1
        silence_ms = after.at_ms - (before.at_ms + before.length_ms)
        lost += max(0, silence_ms) // max(before.length_ms, 1)
    return lost


def is_whole(folder: Path, segments: list[Segment]) -> bool:
    """Say whether the file of every named segment is there and begins as MPEG-TS does."""
    return all(_is_transport_stream(folder / f"segment-{s.number:06d}.ts") for s in segments)


def _is_transport_stream(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(1) == b"\x47"  # the sync byte, ISO/IEC 13818-1 2.4.3.2
    except FileNotFoundError:
        return False
