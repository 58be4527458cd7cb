"""A whole server in the test's process on a real port, and real agents in their own processes."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec

from hostler.api.configuration import ConfigurationFile
from hostler.api.links.links import AgentLinks
from hostler.api.listening import Listening, listen
from hostler.api.serve import serve
from hostler.client import Client
from hostler.core.inputs import CreateToken
from hostler.core.replies import Accepted
from hostler.engine.assemble import MEMORY_URL, EngineOptions, assemble
from hostler.engine.engine import Engine
from hostler.engine.keys import new_token_secret, token_hash
from hostler.engine.translate import apply_configuration
from hostler.model.token import Role
from hostler.wire.documents import BundleDocument, read_bundles, read_config
from hostler.wire.http import NodeView
from tests.eventually import eventually_async

CONFIG = """
fleet:
  timing: {heartbeat: 200ms, suspect_after: 2s, fence_after: 20s, lost_after: 40s}
pools:
  studio: {tiers: [{name: fixed, kind: fixed}]}
  runners:
    tiers: [{name: fixed, kind: fixed}]
    windows:
      - {name: day, time_zone: Europe/Berlin, days: [daily], start: "09:00", end: "17:00", min: 0}
"""


@dataclass
class Lab:
    """A running server."""

    engine: Engine
    links: AgentLinks
    listening: Listening
    folder: Path
    task: asyncio.Task[signal.Signals | None]
    secrets: dict[str, str] = field(default_factory=dict)
    agents: list[RealAgent] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.listening.url

    def client(self, token: str | None = None, **options: Any) -> Client:
        return Client(self.url, token=token, **{"retry_ms": 0, **options})

    def http(self, token: str | None = None) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.AsyncClient(base_url=self.url, headers=headers, trust_env=False)

    async def token(self, name: str, role: Role, **fields: Any) -> str:
        """Make a token past the API, and return its secret."""
        secret = new_token_secret()
        answer = await self.engine.submit(
            CreateToken(
                request_id=f"token-{name}",
                principal="test",
                name=name,
                role=role,
                sha256=token_hash(secret),
                **fields,
            )
        )
        assert isinstance(answer, Accepted), answer
        self.secrets[name] = secret
        return secret

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def agent(self, pool: str, **options: Any) -> NodeView:
        """Start an agent and return its node once it is ready."""
        agent = RealAgent(self.folder / f"agent-{len(self.agents)}", self.url)
        self.agents.append(agent)
        await agent.start(pool=pool, tier="fixed", **options)
        async with self.client() as client:

            async def ready() -> NodeView | None:
                nodes = await client.nodes(pool=pool)
                return next((n for n in nodes if n.hostname == agent.name and _is_up(n)), None)

            found = await eventually_async(ready, what=f"a ready node of {agent.name}")
            assert found is not None
            return found


def _is_up(node: NodeView) -> bool:
    return node.phase == "ready" and node.health == "live" and node.is_connected


class RealAgent:
    """An agent in a process of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.name = folder.name
        self._url = url
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, **options: Any) -> None:
        self.folder.mkdir(exist_ok=True)
        path = self.folder / "options.json"
        told = {
            "server_url": self._url,
            "data_folder": str(self.folder / "data"),
            "hostname": self.name,
            "machine_id": self.name,
            "reconnect_ms_max": 200,
            **options,
        }
        path.write_bytes(msgspec.json.encode(told))
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "hostler.agent", str(path)
        )

    async def stop(self) -> int:
        """Ctrl-C: work is stopped first."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
        try:
            async with asyncio.timeout(20):
                return await self.process.wait()
        finally:
            if self.process.returncode is None:
                self.process.kill()


async def begin(
    folder: Path, *, config: str = CONFIG, store_url: str = MEMORY_URL, port: int = 0
) -> Lab:
    """Start a server; the caller stops it."""
    listening = listen("127.0.0.1", port)
    engine = await assemble(
        EngineOptions(store_url=store_url, folder=folder, server_url=listening.url)
    )
    links = AgentLinks(engine)
    engine.attach(links)
    await engine.start()
    request = apply_configuration(
        read_config(config).require(),
        now_ms=1_780_000_000_000,
        request_id="config",
        principal="test",
        registry=engine.registry,
    )
    answer = await engine.submit(request)
    assert isinstance(answer, Accepted), answer
    file = folder / "hostler.yaml"
    file.write_text(config)
    configuration = ConfigurationFile(file, read_config(config).require())
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve(engine, links, listening, on_ready=ready.set_result, configuration=configuration)
    )
    await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        await task
    return Lab(engine, links, listening, folder, task)


@asynccontextmanager
async def running(folder: Path, **options: Any) -> AsyncIterator[Lab]:
    """A server for the time of a block; its agents are stopped with it."""
    lab = await begin(folder, **options)
    try:
        yield lab
    finally:
        for agent in lab.agents:
            await agent.stop()
        await lab.stop()


def a_bundle(text: str) -> BundleDocument:
    """One bundle out of YAML."""
    (reading,) = read_bundles(text)
    return reading.require()


SLEEPER = a_bundle(
    "{bundle: sleeper, pool: studio, jobs: [{name: main, run: {argv: [sleep, '1000']}}]}"
)
