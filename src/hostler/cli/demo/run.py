"""Runs the story in a world of its own, and reports what held."""

from __future__ import annotations

import asyncio
import importlib.resources
import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import typer
from rich.console import Console

from hostler.base.errors import HostlerError
from hostler.cli.demo.failure import DemoFailed
from hostler.cli.demo.measures import Measures
from hostler.cli.demo.screen import Screen
from hostler.cli.demo.stage import Stage
from hostler.cli.demo.story import tell
from hostler.cli.demo.world import DemoWorld
from hostler.client import Client
from hostler.wire.documents import BundleDocument, read_bundles

EXAMPLE = "live-channel.yaml"


def run_demo(chapters: Sequence[str], *, is_json: bool, is_kept: bool) -> int:
    """Tell the story and return the exit code: 0 when everything held, else 1.

    Args:
        chapters: Those to tell, whatever their order.
        is_json: The summary as JSON on standard output, and nothing else there.
        is_kept: Leave the server, the agents and the encoders running at the end.
    """
    console = Console(stderr=is_json)
    screen = Screen(console, is_silent=is_json)
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        console.print("hostler demo: needs an encoder: pip install 'hostler[demo]'")
        return 1
    world = DemoWorld.create(is_strict="partition" in chapters)
    began = time.monotonic()
    measures = Measures()
    try:
        screen.opening(str(world.root), world.url)
        measures = asyncio.run(_tell(world, screen, chapters, is_kept=is_kept))
        measures.total_ms = round((time.monotonic() - began) * 1_000)
        measures.judge(chapters, is_kept=is_kept)
    except KeyboardInterrupt:
        measures.did_not_hold.append("interrupted")
    finally:
        if measures.did_not_hold and not is_kept:
            screen.say(f"[dim]the server's last words: {world.last_words('server')}[/dim]")
        if not is_kept:
            world.clean_up()
    _report(measures, chapters, screen, world, is_json=is_json, is_kept=is_kept)
    return 1 if measures.did_not_hold else 0


async def _tell(
    world: DemoWorld, screen: Screen, chapters: Sequence[str], *, is_kept: bool
) -> Measures:
    async with Client(world.url, retry_ms=0) as client:
        stage = Stage(world, client, screen, example_bundle())
        try:
            await tell(stage, chapters, is_kept=is_kept)
        except DemoFailed as failure:
            stage.measures.did_not_hold.append(str(failure))
        except HostlerError as error:
            stage.measures.did_not_hold.append(f"{error.code}: {error}")
        for cable in world.cables.values():
            await cable.unplug()
        return stage.measures


def _report(
    measures: Measures,
    chapters: Sequence[str],
    screen: Screen,
    world: DemoWorld,
    *,
    is_json: bool,
    is_kept: bool,
) -> None:
    if is_json:
        told = msgspec.to_builtins(measures)
        if is_kept:
            told |= {"server": world.url, "folder": str(world.root)}
        typer.echo(msgspec.json.format(msgspec.json.encode(told)).decode())
        return
    screen.summary(measures.rows(chapters))
    screen.problems(measures.did_not_hold)
    if is_kept:
        screen.say(
            f"\nLeft running: server {world.url}, files {world.root}\n"
            f"  hostler get nodes --server {world.url}\n"
            f"  hostler events -f --server {world.url}\n"
            "End it with Ctrl-C to these processes (SIGINT): "
            + " ".join(str(pid) for pid in world.pids())
        )


def example_bundle() -> BundleDocument:
    """Return the example that the repository shows, also where only the wheel is installed."""
    packaged = importlib.resources.files("hostler.cli.demo") / EXAMPLE
    path = Path(__file__).parents[4] / "examples" / EXAMPLE  # an editable install
    text = packaged.read_text() if packaged.is_file() else path.read_text()
    return read_bundles(text, EXAMPLE)[0].require()
