"""The demo's workload: an encoder that makes real HLS from a test pattern.

Run as `hostler-encoder`. It becomes ffmpeg (same process, no child), so that what Hostler starts,
watches, signals and kills is the encoder itself. The picture carries a clock, the replica's role
and its allocation, so that a person who plays the stream sees which copy is on air.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path

SEGMENT_SECONDS = 1
"""Length of one segment: short, so that a gap of one is a second of black and not ten."""


def main() -> None:
    """Replace this process with ffmpeg; exit 1 with one line when a part is not installed."""
    options = _options()
    try:
        import imageio_ffmpeg
    except ImportError:
        sys.exit("hostler-encoder: ffmpeg is not installed: pip install 'hostler[demo]'")
    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    output: Path = options.output
    output.mkdir(parents=True, exist_ok=True)
    os.execv(ffmpeg, ffmpeg_argv(ffmpeg, output, size=options.size, rate=options.rate))  # noqa: S606 - an argument vector, and becoming it is the point


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hostler-encoder", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("hls"), help="folder for the stream")
    parser.add_argument("--size", default="320x180", help="picture size (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=15, help="pictures a second")
    return parser.parse_args()


def ffmpeg_argv(ffmpeg: str, output: Path, *, size: str, rate: int) -> list[str]:
    """Return the whole command: pattern and tone in, one-second segments and a playlist out."""
    return [
        ffmpeg,
        # At `info` each segment is a line, so that `hostler logs -f` shows that pictures are made.
        *("-hide_banner", "-loglevel", "info", "-nostdin", "-nostats"),
        *("-re", "-f", "lavfi", "-i", f"testsrc=size={size}:rate={rate}"),
        *("-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"),
        *_burnt_in(),
        *("-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-threads", "1"),
        *("-pix_fmt", "yuv420p", "-g", str(rate * SEGMENT_SECONDS), "-sc_threshold", "0"),
        *("-c:a", "aac", "-b:a", "48k"),
        *("-f", "hls", "-hls_time", str(SEGMENT_SECONDS), "-hls_list_size", "120"),
        *("-hls_flags", "program_date_time+temp_file"),
        *("-hls_segment_filename", str(output / "segment-%06d.ts")),
        str(output / "channel.m3u8"),
    ]


def _burnt_in() -> list[str]:
    """Return the filter that writes a clock and the replica's name into the picture.

    Without the font that the extra `demo` brings, the pattern's own counter has to do.
    """
    font = _font()
    if font is None:
        return []
    role = os.environ.get("HOSTLER_ROLE", "encoder")
    allocation = os.environ.get("HOSTLER_ALLOCATION_ID", "by hand")
    style = f"fontfile='{font}':fontcolor=white:box=1:boxcolor=black@0.6:boxborderw=4"
    clock = f"drawtext={style}:fontsize=22:x=8:y=8:text='%{{localtime\\:%T}}'"
    name = f"drawtext={style}:fontsize=16:x=8:y=h-28:text='{role} {allocation}'"
    return ["-vf", f"{clock},{name}"]


def _font() -> Path | None:
    """Return the file of the font, without importing the package that carries it."""
    found = importlib.util.find_spec("font_roboto")
    if found is None or found.origin is None:
        return None
    font = Path(found.origin).parent / "files" / "Roboto-Medium.ttf"
    return font if font.exists() else None


if __name__ == "__main__":
    main()
