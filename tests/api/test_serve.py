"""Taking a port, serving with TLS, stopping: each failure is one clear sentence."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from hostler.api.listening import Tls, listen
from hostler.api.serve import ensure_admin
from hostler.base.errors import Rejected
from hostler.client import Client, ClientError
from tests.api.lab import begin, running
from tests.eventually import eventually_async


def test_a_taken_port_is_said_plainly() -> None:
    first = listen("127.0.0.1", 0)
    try:
        with pytest.raises(Rejected, match=rf"port {first.port} on 127\.0\.0\.1 is taken") as error:
            listen("127.0.0.1", first.port)
        assert error.value.code == "port_taken"
    finally:
        first.socket.close()


def test_a_certificate_that_cannot_be_used_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="cannot be used: No such file"):
        listen("127.0.0.1", 0, Tls(tmp_path / "c", tmp_path / "k"))


def test_anything_wider_than_loopback_needs_tls() -> None:
    with pytest.raises(Rejected, match="certificate"):
        listen("0.0.0.0", 0)


def test_the_url_is_one_that_can_be_reached() -> None:
    for host, shown in (("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"), ("localhost", "localhost")):
        listening = listen(host, 0)
        assert listening.url == f"http://{shown}:{listening.port}"
        listening.socket.close()


async def test_a_stop_ends_streams_at_once(tmp_path: Path) -> None:
    lab = await begin(tmp_path)
    async with lab.client() as client:
        waiting = asyncio.ensure_future(anext(client.events(kinds=["node_ready"])))
        async with lab.http() as http:
            polling = asyncio.create_task(
                http.post("/v1/leases", json={"pool": "runners", "wait_ms": 60_000})
            )

            async def in_line() -> bool:
                return bool((await http.get("/v1/leases")).json()["items"])

            await eventually_async(in_line)
            async with asyncio.timeout(10):
                await lab.stop()
            assert (await polling).json()["phase"] == "waiting"
            with pytest.raises(Exception, match="cannot reach"):
                await waiting
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", lab.listening.port)) != 0


async def test_the_first_admin_of_a_wider_server_is_in_a_file(tmp_path: Path) -> None:
    async with running(tmp_path) as lab:
        assert await ensure_admin(lab.engine, lab.listening, tmp_path) is None
        wider = type(lab.listening)(lab.listening.socket, "0.0.0.0", lab.listening.port, None)
        path = await ensure_admin(lab.engine, wider, tmp_path)
        assert path is not None
        assert path.stat().st_mode & 0o777 == 0o600
        assert await ensure_admin(lab.engine, wider, tmp_path) is None
        async with lab.client(path.read_text().strip()) as admin:
            assert (await admin.status()).role == "admin"
        async with lab.client() as nobody:
            with pytest.raises(ClientError, match="demands a token"):
                await nobody.status()


async def test_a_client_says_what_is_wrong_with_a_url() -> None:
    async with Client("http://127.0.0.1:1", retry_ms=0) as client:
        with pytest.raises(Exception, match="is `hostler server` running there"):
            await client.status()
