"""An agent from its start to its exit code: identity, signals, and the warden.

How it ends:

- SIGTERM leaves supervised work running, so that an upgrade does not touch it (unless
  `is_work_stopped_on_exit`). A new agent on the same folder takes the work over; if none comes
  before the authority runs out, the supervisors stop what must not run without it.
- SIGINT, Ctrl-C in a terminal, stops the work first: whoever tries the agent by hand expects that
  nothing is left.
- A server's shutdown stops the work first; a final refusal does too, and ends with exit code 1.

Leased commands end with the agent in every case; if it is killed or hangs, its warden kills them.
If it is frozen together with supervisors, the warden ends their jobs, too, once their grace is
over.
"""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import structlog

import hostler.agent.strays
from hostler import __version__
from hostler.agent.core.inputs import Input, StopAsked
from hostler.agent.core.state import AgentSettings
from hostler.agent.folder import DataFolder
from hostler.agent.inventory import DeclaredShape, read_inventory
from hostler.agent.link import AgentLink, Backoff, join, tls_context, websocket_dial
from hostler.agent.notices import NoticeSource
from hostler.agent.runtime.environment import LEASE_MARK, PATH_DEFAULT, NodeIdentity
from hostler.agent.shell import AgentShell
from hostler.agent.tasks import Tasks
from hostler.base.errors import Rejected
from hostler.wire.agent import JoinRequest, JoinResponse

LOG: Final = structlog.get_logger("hostler.agent")


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator, or the provider that launched the machine, tells an agent."""

    server_url: str
    """Such as `https://hostler.example:7400`."""
    data_folder: str
    """Where identity, logs and work live; one agent at a time."""
    join_token: str | None = None
    """Needed once; may be left out towards a loopback server that runs without tokens."""
    node_id: str | None = None
    """The record that this machine was launched for."""
    machine_id: str | None = None
    """The provider's name of this machine."""
    pool: str | None = None
    """Where to join; honoured by a loopback server without tokens, else the token says it."""
    tier: str | None = None
    """As `pool`."""
    hostname: str | None = None
    """Shown to people; `None` takes the machine's."""
    shape: DeclaredShape = DeclaredShape()
    """What is declared instead of measured."""
    ca_file: str | None = None
    """Certificate authority of the server, where the system's own do not do."""
    notices: NoticeSource = NoticeSource()
    """Where the platform says that the machine is about to be taken back."""
    is_work_stopped_on_exit: bool = False
    """Whether SIGTERM stops the work too."""
    exit_when_silent_ms: int | None = None
    """On a machine that is there for this agent alone: stop everything and end after so long
    without the server, so that a machine that nobody remembers costs nothing; `None`: never."""
    ended_keep_ms: int = 3_600_000
    """How long logs of ended allocations are kept."""
    ended_count_max: int = 50
    """How many ended allocations are kept at most."""
    reconnect_ms_max: int = 5_000
    """Ceiling of the wait between attempts to reach the server."""


async def run_agent(options: AgentOptions) -> int:
    """Run an agent until it is told to end; gives the exit code of the process.

    Raises:
        Rejected: It cannot begin: the platform or the data folder will not do, or the server
            refuses the join. The message says what to change.
    """
    if sys.platform != "linux":
        raise Rejected("platform_unsupported", "an agent needs Linux", platform=platform.system())
    data = DataFolder(Path(options.data_folder))
    data.open()
    try:
        stop = asyncio.Event()
        signals = _Signals(options, stop)
        signals.open()
        try:
            identity = await _identity(options, data, stop)
            if identity is None:
                return 0
            return await _live(options, data, identity, signals)
        finally:
            signals.close()
    finally:
        data.close()


class _Signals:
    """Turns signals into inputs once there is a core, and into an end of the join before."""

    def __init__(self, options: AgentOptions, stop: asyncio.Event) -> None:
        self._options = options
        self._stop = stop
        self.post: Callable[[Input], None] | None = None

    def open(self) -> None:
        loop = asyncio.get_running_loop()
        is_stopped = self._options.is_work_stopped_on_exit
        loop.add_signal_handler(signal.SIGTERM, self._on_signal, is_stopped)
        loop.add_signal_handler(signal.SIGINT, self._on_signal, True)

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGTERM)
        loop.remove_signal_handler(signal.SIGINT)

    def _on_signal(self, is_work_stopped: bool) -> None:  # noqa: FBT001 - called by the loop
        self._stop.set()
        if self.post is not None:
            self.post(StopAsked(is_work_stopped=is_work_stopped))


async def _identity(
    options: AgentOptions, data: DataFolder, stop: asyncio.Event
) -> JoinResponse | None:
    """Find out who we are, joining if we are nobody yet; `None` when it is time to end first."""
    identity = data.read_identity()
    if identity is not None:
        return identity
    request = JoinRequest(
        join_token=options.join_token,
        hostname=options.hostname or socket.gethostname(),
        machine_id=options.machine_id,
        node_id=options.node_id,
        pool=options.pool,
        tier=options.tier,
    )
    loop = asyncio.get_running_loop()
    joining = loop.create_task(
        join(
            options.server_url,
            request,
            key=data.join_key(),
            backoff=Backoff(options.reconnect_ms_max / 1_000),
            tls=tls_context(options.server_url, options.ca_file),
        )
    )
    stopping = loop.create_task(stop.wait())
    try:
        silence_ms_max = options.exit_when_silent_ms
        await asyncio.wait(
            (joining, stopping),
            timeout=None if silence_ms_max is None else silence_ms_max / 1_000,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not joining.done():
            return None
        identity = joining.result()
    finally:
        joining.cancel()
        stopping.cancel()
    data.write_identity(identity)
    LOG.info("joined", node=identity.node_id)
    return identity


async def _live(
    options: AgentOptions, data: DataFolder, identity: JoinResponse, signals: _Signals
) -> int:
    settings = AgentSettings(
        agent_version=__version__,
        node_id=identity.node_id,
        machine_id=options.machine_id,
        incarnation=data.raise_incarnation(),
        ended_keep_ms=options.ended_keep_ms,
        ended_count_max=options.ended_count_max,
        exit_when_silent_ms=options.exit_when_silent_ms,
    )
    node = NodeIdentity(
        node_id=identity.node_id,
        machine_id=options.machine_id,
        path=os.environ.get("PATH", PATH_DEFAULT),
    )

    tls = tls_context(options.server_url, options.ca_file)
    dial = websocket_dial(options.server_url, identity.credential, tls)

    def connect(post: Callable[[Input], None], tasks: Tasks) -> AgentLink:
        return AgentLink(
            dial,
            post,
            tasks,
            backoff=Backoff(options.reconnect_ms_max / 1_000),
            when_unknown=f"if the fleet was set up anew: stop the agent, remove {data.path},"
            " and start it again to join",
        )

    shell = AgentShell(settings, data, node, connect, options.notices)
    signals.post = shell.post
    warden = await _start_warden(data, node)
    try:
        return await shell.run(read_inventory(options.shape))
    finally:
        if warden.stdin is not None:
            warden.stdin.close()
        await warden.wait()


async def _start_warden(data: DataFolder, node: NodeIdentity) -> asyncio.subprocess.Process:
    """Start the process that kills leased commands if we die, and all bound work if we hang."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        "-E",
        hostler.agent.strays.__file__,
        f"{LEASE_MARK}={data.leases}/",
        str(data.authority),
        str(data.allocations),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=node.variables(),
        start_new_session=True,
    )
