"""The demo's own world, whatever name its folder is given."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from hostler.cli.demo import wall
from hostler.cli.demo.cable import Cable
from hostler.cli.demo.world import CONFIGURATION, RELAXED, STRICT, DemoWorld
from hostler.wire.documents import read_config


@pytest.mark.parametrize("limits", [STRICT, RELAXED])
@pytest.mark.parametrize("name", ["hostler-demo-ab0cd_1x", "hostler-demo-_b0cd11_"])
def test_the_fleet_has_an_id_that_is_allowed(name: str, limits: dict[str, str]) -> None:
    world = DemoWorld(root=Path("/tmp") / name, port=7_000)
    text = CONFIGURATION.format(fleet_id=world.fleet_id, port=world.port, **limits)
    assert read_config(text, "hostler.yaml").require().fleet.id == world.fleet_id


async def test_a_cable_that_is_pulled_carries_nothing_and_holds_it_until_it_is_mended() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    cable = Cable(server.sockets[0].getsockname()[1])
    port = int((await cable.plug_in()).rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"before")
    assert await reader.readexactly(6) == b"before"
    cable.pull()
    writer.write(b"held up")
    answer = asyncio.ensure_future(reader.readexactly(7))
    done, _ = await asyncio.wait({answer}, timeout=0.05)
    assert not done
    cable.mend()
    assert await answer == b"held up"
    await cable.unplug()
    assert await reader.read() == b""
    writer.close()
    server.close()


def test_a_clock_that_is_set_is_so_for_one_process_alone(tmp_path: Path) -> None:
    path = tmp_path / "server.wall"
    assert wall.offset_ms(path) == 0
    path.write_text("-3600000")
    code = (
        "import sys, time; from hostler.cli.demo import wall; real = time.time();"
        "sys.modules['hostler.cli.app'] = type(sys)('app');"
        "sys.modules['hostler.cli.app'].main = lambda: print(round((real - time.time()) / 60));"
        "wall.main()"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={wall.VARIABLE: str(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == "60"
