"""`hostler server`: the one command that assembles an engine.

How it ends. SIGTERM is how service managers stop a server, for an upgrade say: machines and what
they run go on, and the next server takes them over, as it does after a crash. Ctrl-C at a terminal
is how a person ends what they have tried: the machines that this server made out of processes on
this host end too, as with `nomad agent -dev`; `--keep-machines` leaves them. A second Ctrl-C ends
at once.
"""

from __future__ import annotations

import signal
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hostler.cli import panels
from hostler.cli.command import command
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.log_output import LogFormat, LogFormatOption, VerboseOption, configure_logs
from hostler.cli.output import counted
from hostler.cli.terminal import note

if TYPE_CHECKING:
    from hostler.api.listening import Listening, Tls
    from hostler.core.replies import Refused
    from hostler.engine.engine import Engine
    from hostler.providers.registry import Registry
    from hostler.wire.documents import ConfigDocument, Reading

LOCAL: Final = "local"
"""The provider whose machines are processes on this host."""

STOP_ROUNDS_MAX: Final = 3
"""How often local machines are listed and stopped; one round does it, unless one was half-born."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "server",
        panel=panels.START,
        examples="""
        hostler server -c examples/hostler.yaml
        hostler server -c hostler.yaml --port 7500 --data /var/lib/hostler
        hostler server -c hostler.yaml --ephemeral
        """,
    )(server)


@dataclass(frozen=True)
class Options:
    """What the command line and the document come to.

    Attributes:
        folder: Where the database, the key and the providers' files live.
        has_store: False keeps the fleet in memory alone.
        has_local_machines_at_end: Ctrl-C leaves machines on this host running.
        is_for_people: Greet on standard error; programs read the log instead.
    """

    config: Path
    reading: Reading[ConfigDocument]
    bind: str
    port: int
    tls: Tls | None
    folder: Path
    has_store: bool
    has_local_machines_at_end: bool
    is_for_people: bool

    @property
    def document(self) -> ConfigDocument:
        """The configuration."""
        return self.reading.require()

    @property
    def store_url(self) -> str:
        """The address of the store."""
        from urllib.parse import quote

        path = quote(str(self.folder.absolute() / "hostler.db"))
        return f"sqlite:///{path}" if self.has_store else "memory:"


def server(
    config: Annotated[
        Path,
        typer.Option("--config", "-c", metavar="FILE", help="The configuration, hostler.yaml."),
    ] = Path("hostler.yaml"),
    *,
    bind: Annotated[
        str | None,
        typer.Option("--bind", help="Address to listen on, instead of the configuration's."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65_535, help="Port; 0 takes a free one and says which."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FOLDER", help="Where the database and the key live."),
    ] = None,
    ephemeral: Annotated[
        bool,
        typer.Option("--ephemeral", help="Keep everything in memory; at the end it is forgotten."),
    ] = False,
    keep_machines: Annotated[
        bool,
        typer.Option("--keep-machines", help="Ctrl-C leaves machines on this host running."),
    ] = False,
    log_format: LogFormatOption = LogFormat.AUTO,
    verbose: VerboseOption = False,
) -> None:
    """Run a server: API, event stream, and the way in for agents, on one port.

    On loopback it needs no tokens, for development. Everything that must last is in one folder:
    stop it, even with kill -9, start it again, and it goes on where it was.

    Ctrl-C stops the server and the machines that it made out of processes on this host. SIGTERM
    stops the server alone: machines and their work go on, and the next server takes them over. A
    second Ctrl-C ends at once.

    SIGHUP reads the configuration again, as `hostler config reload` does.
    """
    from hostler.api.serve import run

    is_for_people = configure_logs(log_format, is_verbose=verbose)
    with ExitStack() as stack:
        options = _options(
            config, bind, port, data, keep_machines=keep_machines, is_for_people=is_for_people
        )
        if ephemeral:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hostler-"))
            options = replace(options, folder=Path(folder), has_store=False)
        run(_serve(options))


# -- before anything is touched -----------------------------------------------------------------


def _options(
    config: Path,
    bind: str | None,
    port: int | None,
    data: Path | None,
    *,
    keep_machines: bool,
    is_for_people: bool,
) -> Options:
    """Read and check the configuration, and what the command line changes of it."""
    from hostler.api.listening import Tls
    from hostler.cli.documents import name_of, read_text
    from hostler.wire.documents import read_config

    reading = read_config(read_text(config), name_of(config))
    document = reading.require()
    beside = config.parent
    tls = document.server.tls
    options = Options(
        config=config,
        reading=reading,
        bind=bind or document.server.bind,
        port=document.server.port if port is None else port,
        tls=None if tls is None else Tls(cert=beside / tls.cert, key=beside / tls.key),
        folder=data or beside / document.server.data,
        has_store=True,
        has_local_machines_at_end=keep_machines,
        is_for_people=is_for_people,
    )
    _check_providers(options)
    return options


def _check_providers(options: Options) -> None:
    """Let providers see their tiers' options, before a port or a file is touched.

    Raises:
        DocumentRejected: They have something against them; all of it is in the error.
    """
    from hostler.engine.translate import provider_problems, time_zone_problems

    problems = [
        *provider_problems(options.document, _registry(options)),
        *time_zone_problems(options.document),
    ]
    if problems:
        raise options.reading.placed(problems)


def _registry(options: Options) -> Registry:
    from hostler.engine.clock import SystemClock
    from hostler.providers.registry import Registry

    return Registry(options.folder / "providers", SystemClock())


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CommandError(
            f"cannot make the data folder {folder}: {why}",
            hint="choose another with --data, or `server.data` in the configuration",
        ) from error


# -- while it runs ------------------------------------------------------------------------------


async def _serve(options: Options) -> None:
    """Take the port, assemble the engine, configure it, and serve until told to stop."""
    from hostler.api.listening import listen

    listening = listen(options.bind, options.port, options.tls)
    with listening.socket:
        ended_by, fleet_id = await _serve_on(options, listening)
    if ended_by is signal.SIGINT or not options.has_store:
        await _stop_local_machines(options, fleet_id)


async def _serve_on(options: Options, listening: Listening) -> tuple[signal.Signals | None, str]:
    """Serve on a port that is ours; return the signal that ended it, and the fleet's id."""
    from hostler.api.configuration import ConfigurationFile
    from hostler.api.links.links import AgentLinks
    from hostler.api.serve import ensure_admin, serve
    from hostler.engine.assemble import EngineOptions, assemble

    _make_folder(options.folder)
    engine = await assemble(
        EngineOptions(store_url=options.store_url, folder=options.folder, server_url=listening.url)
    )
    links = AgentLinks(engine)
    engine.attach(links)
    await engine.start()
    try:
        await _configure(engine, options)
        admin_file = await ensure_admin(engine, listening, options.folder)
        fleet_id = await engine.read(lambda fleet: fleet.settings and fleet.settings.fleet_id)
    except BaseException:
        await engine.stop()
        raise

    def say_ready(url: str) -> None:
        for line in _welcome(options, url, fleet_id or "", admin_file):
            note(line)

    ended_by = await serve(
        engine,
        links,
        listening,
        on_ready=say_ready if options.is_for_people else None,
        configuration=ConfigurationFile(options.config, options.document),
    )
    return ended_by, fleet_id or ""


async def _configure(engine: Engine, options: Options) -> None:
    """Make the document the desired configuration.

    Raises:
        DocumentRejected: The core has something against it; all of it is in the error.
        CommandError: It does not fit the fleet that the store holds.
    """
    from hostler.api.gateway import new_request_id
    from hostler.core.replies import Refused
    from hostler.engine.translate import apply_configuration

    result = await engine.submit(
        apply_configuration(
            options.document,
            now_ms=engine.clock.now_ms(),
            request_id=new_request_id(),
            principal="server",
            registry=engine.registry,
        )
    )
    if isinstance(result, Refused):
        raise _refused(result, options)


def _refused(result: Refused, options: Options) -> Exception:
    from hostler.wire.documents import DocumentProblem

    if not result.problems:
        return CommandError(result.message, code=ExitCode.BAD_INPUT)
    return options.reading.placed(
        [
            DocumentProblem(path=one.path, code=one.code, message=one.message)
            for one in result.problems
        ]
    )


def _welcome(options: Options, url: str, fleet_id: str, admin_file: Path | None) -> list[str]:
    """Say where the server is, for whom, and what comes next."""
    from hostler import __version__
    from hostler.wire.documents.rules import is_loopback

    pools = options.document.pools
    where = str(options.folder) if options.has_store else "memory alone: nothing of it will last"
    lines = [
        f"Hostler {__version__} listens on {url}",
        f"  fleet {fleet_id}, {counted(len(pools), 'pool')}; data in {where}",
    ]
    if is_loopback(options.bind):
        lines.append(
            "  only this machine can reach it, and needs no token until an admin has one: for"
            " development"
        )
    if admin_file is not None:
        lines.append(f"  the first admin's token is in {admin_file}")

    def proof(pool: str, tier: str) -> str:
        asked = f"--pool {pool} --tier {tier}"
        if is_loopback(options.bind):
            return asked
        return f"--join-token-file FILE  (of: hostler token create NAME --role agent {asked})"

    lines += [
        f"  agents join with: hostler agent{_elsewhere(url)} {proof(name, tier.name)}"
        for name, pool in pools.items()
        for tier in pool.tiers
        if tier.kind == "fixed"
    ]
    lines.append(f"  look around with: hostler{_elsewhere(url)} get nodes")
    kept = " and leaves its machines" if options.has_local_machines_at_end else ""
    lines.append(f"Ctrl-C ends it{kept}; again, at once.")
    return lines


def _elsewhere(url: str) -> str:
    """Name the server where the default would lead elsewhere."""
    from hostler.cli.context import URL_DEFAULT

    return "" if url == URL_DEFAULT else f" --server {url}"


# -- at the end ---------------------------------------------------------------------------------


async def _stop_local_machines(options: Options, fleet_id: str) -> None:
    """End the machines of this fleet that are processes on this host, and say so."""
    used = {tier.provider for pool in options.document.pools.values() for tier in pool.tiers}
    if LOCAL not in used:
        return
    registry = _registry(options)
    provider = registry.opened(LOCAL, fleet_id)
    try:
        for _ in range(STOP_ROUNDS_MAX):
            machine_ids = [machine.machine_id async for machine in provider.list_owned()]
            if not machine_ids:
                return
            if options.has_local_machines_at_end:
                note(f"{counted(len(machine_ids), 'machine')} on this host went on running;")
                note("the next server on the same data takes them over")
                return
            note(f"stopping {counted(len(machine_ids), 'machine')} on this host")
            for machine_id in machine_ids:
                await provider.stop(machine_id)
    finally:
        await registry.close()
