"""`hostler agent`: makes this machine a node."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias
from urllib.parse import urlsplit

import typer

from hostler.cli import panels
from hostler.cli.command import command
from hostler.cli.context import ServerOption, resolve
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.log_output import LogFormat, LogFormatOption, VerboseOption, configure_logs
from hostler.cli.terminal import note

if TYPE_CHECKING:
    from hostler.agent.main import AgentOptions
    from hostler.agent.notices import NoticeSource

JOIN_TOKEN_VARIABLE: Final = "HOSTLER_JOIN_TOKEN"

MACHINE_MARK: Final = "HOSTLER_MACHINE_ID"
"""By it the provider `local` finds the processes of a machine."""

FOLDER_COUNT_MAX: Final = 1_000
"""Agents on one machine that choose their folders by themselves."""

PoolOption: TypeAlias = Annotated[
    str | None, typer.Option("--pool", help="Join this pool; a join token says it else.")
]
TierOption: TypeAlias = Annotated[
    str | None, typer.Option("--tier", help="Join this fixed tier of the pool.")
]
DataOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FOLDER",
        help="Identity, logs and work; one agent at a time. Else the first free folder in"
        " $XDG_STATE_HOME/hostler/agents.",
    ),
]
JoinTokenFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--join-token-file",
        metavar="FILE",
        help=f"A token with the role agent, needed once; else ${JOIN_TOKEN_VARIABLE}.",
    ),
]
CaFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--ca-file", metavar="FILE", help="Who vouches for the server."),
]
NameOption: TypeAlias = Annotated[
    str | None, typer.Option("--name", help="Shown to people; else the host's name.")
]
CapacityOption: TypeAlias = Annotated[
    int | None,
    typer.Option("--capacity", min=1, help="Units of work it takes; else its cores."),
]
CoresOption: TypeAlias = Annotated[
    str | None, typer.Option("--cores", help="CPU that it offers, such as 2 or 500m.")
]
MemoryOption: TypeAlias = Annotated[
    str | None, typer.Option("--memory", help="Memory that it offers, such as 4GiB.")
]
CapabilityOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--capability",
        metavar="NAME[=COUNT][,KEY=VALUE...]",
        help="Something that jobs can require, such as gpu=2,model=a10; repeatable.",
    ),
]
DeviceOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="KIND:ID",
        help="A named thing that one job holds at a time; repeatable.",
    ),
]
NoticeFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--notice-file", metavar="FILE", help="Says when this machine is to be taken back."
    ),
]
NoticeUrlOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--notice-url", metavar="URL", help="As --notice-file; error 404 is no notice."),
]
NoticeHeaderOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--notice-header", metavar="NAME:VALUE", help="Sent to --notice-url."),
]
StopWorkOnExitOption: TypeAlias = Annotated[
    bool,
    typer.Option("--stop-work-on-exit", help="SIGTERM stops the work too, as Ctrl-C does."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "agent",
        panel=panels.START,
        examples="""
        hostler agent --pool studio --tier own
        hostler agent --pool studio --tier own --capacity 10 --capability sdi-input=2
        hostler agent -s https://hostler.example:7464 --join-token-file join.token
        """,
    )(agent)


def agent(
    server: ServerOption = None,
    *,
    pool: PoolOption = None,
    tier: TierOption = None,
    data: DataOption = None,
    join_token_file: JoinTokenFileOption = None,
    ca_file: CaFileOption = None,
    name: NameOption = None,
    capacity: CapacityOption = None,
    cores: CoresOption = None,
    memory: MemoryOption = None,
    capability: CapabilityOption = None,
    device: DeviceOption = None,
    notice_file: NoticeFileOption = None,
    notice_url: NoticeUrlOption = None,
    notice_header: NoticeHeaderOption = None,
    stop_work_on_exit: StopWorkOnExitOption = False,
    log_format: LogFormatOption = LogFormat.AUTO,
    verbose: VerboseOption = False,
) -> None:
    """Make this machine a node: run what the server places here, until told to stop.

    The agent dials the server and needs no open port. Work has its own supervisors: SIGTERM, a
    crash or an upgrade of the agent leaves it running, and the next agent on the same folder takes
    it over. Ctrl-C stops the work too.
    """
    import asyncio

    from msgspec.structs import replace

    from hostler.agent.main import AgentOptions, run_agent
    from hostler.base.errors import Rejected
    from hostler.base.units import cores_milli, size_bytes
    from hostler.cli.declared_shape import declared_shape

    target = resolve(server, None)
    configure_logs(log_format, is_verbose=verbose)
    authority = ca_file or target.tls_ca
    options = AgentOptions(
        server_url=target.url,
        data_folder="",
        join_token=_join_token(join_token_file),
        pool=pool,
        tier=tier,
        hostname=name,
        shape=declared_shape(
            capacity,
            None if cores is None else cores_milli(cores),
            None if memory is None else size_bytes(memory),
            capability or [],
            device or [],
        ),
        ca_file=None if authority is None else str(authority),
        notices=_notices(notice_file, notice_url, notice_header or []),
        is_work_stopped_on_exit=stop_work_on_exit,
    )
    for folder in _free_folders(target.url, pool, tier) if data is None else (data,):
        _check_joins(folder, options)
        machine_id = _marked(folder)
        note(f"agent for {target.url}, in {folder}; Ctrl-C ends it and what it runs")
        try:
            here = replace(options, data_folder=str(folder), machine_id=machine_id)
            raise typer.Exit(asyncio.run(run_agent(here)))
        except Rejected as refusal:
            if refusal.code != "data_folder_taken" or data is not None:
                raise
            # Another agent, started in the same instant, was quicker.
    raise CommandError("too many agents run here; name a folder with --data")


def _notices(file: Path | None, url: str | None, headers: list[str]) -> NoticeSource:
    from hostler.agent.notices import NoticeSource

    if url is not None and not url.startswith(("http://", "https://")):
        raise CommandError(
            f"--notice-url {url}: an address begins with http:// or https://",
            code=ExitCode.BAD_INPUT,
        )
    pairs = [header.partition(":") for header in headers]
    if any(not name.strip() or not value.strip() for name, _, value in pairs):
        raise CommandError(
            "--notice-header is NAME:VALUE, such as Metadata-Flavor:Google",
            code=ExitCode.BAD_INPUT,
        )
    return NoticeSource(
        file=None if file is None else str(file),
        url=url,
        headers={name.strip(): value.strip() for name, _, value in pairs},
    )


def _check_joins(folder: Path, options: AgentOptions) -> None:
    """Refuse an agent that is nobody yet and does not say what to join."""
    is_somebody = (folder / "credential").exists() or options.join_token is not None
    if not is_somebody and not (options.pool and options.tier):
        raise CommandError(
            "say what to join: --pool and --tier, or a token that says it",
            code=ExitCode.BAD_INPUT,
            hint="`hostler token create NAME --role agent --pool POOL --tier TIER` makes one",
        )


def _marked(folder: Path) -> str:
    """Return the machine's id, with it in the environment that the kernel shows of this process.

    What a process puts into its own environment later is not shown, so it starts itself anew.
    """
    from hostler.agent.box import box_id

    machine_id = box_id(folder)
    if os.environ.get(MACHINE_MARK) != machine_id:
        environment = {**os.environ, MACHINE_MARK: machine_id}
        os.execve(sys.executable, sys.orig_argv, environment)  # noqa: S606 - ourselves, as we were started
    return machine_id


def _join_token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(JOIN_TOKEN_VARIABLE) or None
    from hostler.cli.context import read_token

    return read_token(file)


# -- where it keeps its files -------------------------------------------------------------------


def _free_folders(url: str, pool: str | None, tier: str | None) -> Iterator[Path]:
    """Give the folders that no agent uses, in order, so that each terminal can have one.

    The same command later finds the same folder, and with it the node that it was.
    """
    return (folder for folder in _folders(url, pool, tier) if not _is_used(folder))


def _folders(url: str, pool: str | None, tier: str | None) -> Iterator[Path]:
    state = os.environ.get("XDG_STATE_HOME") or Path(os.environ.get("HOME", "/"), ".local/state")
    parts = urlsplit(url)
    place = f"{parts.hostname}-{parts.port or parts.scheme}".replace(":", "-")
    role = "-".join(part for part in (pool, tier) if part) or "node"
    for number in range(1, FOLDER_COUNT_MAX + 1):
        yield Path(state, "hostler", "agents", place, f"{role}-{number}")


def _is_used(folder: Path) -> bool:
    """Say whether an agent holds a folder's lock, as `hostler.agent.folder` takes it."""
    try:
        with (folder / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
