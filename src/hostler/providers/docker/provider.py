"""The provider `docker`: a machine is a container, and commands go in through the engine.

A container's name follows from its token, so the engine itself sees to it that one token makes one
container. Its main process only waits: it ends, and with it the container, when the server was
silent for too long. What has ended is still there until it is removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from hostler.base.ids import MachineId
from hostler.model.pool import Offer
from hostler.ports.commands import Execution, MachineCommand, MachineFound
from hostler.ports.posix import CLEARED_NOT, boot_argv, clear_script, command_script
from hostler.ports.provider import (
    CapacityUnavailable,
    LaunchRequest,
    Machine,
    OutcomeUnknown,
    ProviderContext,
    ProviderFailed,
    ProviderKind,
    QuotaExceeded,
    RequestInvalid,
)
from hostler.providers.docker.checks import self_check
from hostler.providers.docker.ends import Ends, how_ended
from hostler.providers.docker.engine_api import Absent, Conflict, EngineApi
from hostler.providers.docker.execution import DockerExecution
from hostler.providers.docker.options import DockerOptions, host_config, problems_of, socket_of
from hostler.providers.docker.tags import (
    FLEET_LABEL,
    engine_mark,
    has_ended,
    instant_ms,
    labels_of,
    machine_id_of,
    machine_of,
)

WORK_FOLDER: Final = "/tmp/.hostler"  # noqa: S108 - in a container of its own

LOOK_COUNT_MAX: Final = 8
"""Containers that are looked at beside each other for a list."""

KEEPER: Final = """
trap 'exit 0' TERM INT
mkdir -p "$2" && : >"$2/alive"
while [ -e "$2/alive" ]; do
    rm -f "$2/alive"
    sleep "$1" & wait $!
done
"""
"""The main process: ends when nobody has made the file anew during a whole silence. `wait` also
takes note of orphans that end, so that none stays as a zombie."""

TWIN_TRIES_MAX: Final = 40
"""Of looking whether a twin of a launch that failed has made the container, 50 ms apart."""

ALIVE_SCRIPT: Final = f"mkdir -p {WORK_FOLDER} && : >{WORK_FOLDER}/alive"


class DockerProvider:
    """Containers of one fleet."""

    def __init__(self, context: ProviderContext) -> None:
        self._fleet_id = context.fleet_id
        self._clock = context.clock
        self._memory = context.folder / "engines"
        self._engines: dict[str, EngineApi] = {}
        self._used: set[str] = set()
        self._alive_at_ms: dict[MachineId, int] = {}
        self._ends = Ends(context.folder / "ends")

    # -- the port ----------------------------------------------------------------------------

    async def launch(self, request: LaunchRequest) -> Machine:
        """Make a container and start it; see `Provider.launch`."""
        options = request.options
        if request.fleet_id != self._fleet_id or not isinstance(options, DockerOptions):
            raise RequestInvalid("the request is not for this provider", token=request.token)
        socket = socket_of(options)
        engine = self._engine(socket)
        await self._remember(engine)
        machine_id = machine_id_of(socket, self._fleet_id, request.token)
        if await self._look(engine, machine_id) is None:
            await self._check_quota(engine, options)
            await self._create(engine, machine_id, request, options)
        await self._start(engine, machine_id)
        machine = await self._look(engine, machine_id)
        if machine is None:
            raise OutcomeUnknown("the container was removed as it began", machine_id=machine_id)
        return machine

    async def get(self, machine_id: MachineId) -> Machine | None:
        """Return a container until it has ended; see `Provider.get`.

        One that has ended by itself is gone, although its files are there: lists show it, so that
        it is removed as an orphan.
        """
        engine = self._engine_of(machine_id)
        container = None if engine is None else await engine.inspect(machine_id)
        if container is None or has_ended(container):
            return None
        return machine_of(container, self._fleet_id)

    async def list_owned(self) -> AsyncIterator[Machine]:
        """Yield our containers on every engine that was ever used; see `Provider.list_owned`."""
        for socket in self._remembered():
            machines = await self._list(self._engine(socket))
            if not machines and socket not in self._used:
                (self._memory / engine_mark(socket)).unlink(missing_ok=True)
            for machine in machines:
                yield machine

    async def stop(self, machine_id: MachineId) -> None:
        """Remove a container with its volumes; see `Provider.stop`.

        It is killed first and its end written down, so that this is known whatever happens then.
        """
        engine = self._engine_of(machine_id)
        container = None if engine is None else await engine.inspect(machine_id)
        if engine is None or container is None or machine_of(container, self._fleet_id) is None:
            return
        asked_at_ms = self._clock.now_ms()
        if container["State"].get("Running"):
            container = await engine.kill(machine_id) or container
        finished_at_ms = None
        if not container["State"].get("Running"):
            finished_at_ms = instant_ms(str(container["State"].get("FinishedAt") or ""))
        self._ends.note(machine_id, asked_at_ms if finished_at_ms is None else finished_at_ms)
        # 409: its removal is under way already.
        with contextlib.suppress(Absent, Conflict):
            await engine.call("DELETE", f"/containers/{machine_id}", force="true", v="true")
        self._alive_at_ms.pop(machine_id, None)

    async def ended_at_ms(self, machine_id: MachineId) -> int | None:
        """Return when a container ended that is there or was removed lately; see `TellsEnds`."""
        engine = self._engine_of(machine_id)
        container = None if engine is None else await engine.inspect(machine_id)
        if container is not None and has_ended(container):
            return instant_ms(str(container["State"].get("FinishedAt") or ""))
        return self._ends.of(machine_id)

    async def boot_log(self, machine_id: MachineId, bytes_max: int) -> str:
        """Return how the container ended, and what it wrote; see `TellsBootLog`."""
        engine = self._engine_of(machine_id)
        container = None if engine is None else await engine.inspect(machine_id)
        if engine is None or container is None or machine_of(container, self._fleet_id) is None:
            return ""
        log = await engine.logs(machine_id, bytes_max)
        return f"{log}\n{how_ended(container)}".strip() if has_ended(container) else log

    async def offers(self) -> Sequence[Offer]:
        """Return nothing: limits come from the tier's own offers, whatever their names."""
        return ()

    async def close(self) -> None:
        """Let go of the connections; see `Provider.close`."""
        engines, self._engines = self._engines, {}
        for engine in engines.values():
            await engine.close()

    # -- commands ----------------------------------------------------------------------------

    async def probe(self, machine_id: MachineId) -> MachineFound:
        """See that the container runs, and now and then tell it so; see `CommandProvider.probe`."""
        engine = self._engine_for(machine_id)
        container = await engine.inspect(machine_id)
        machine = None if container is None else machine_of(container, self._fleet_id)
        if container is None or machine is None or not container["State"]["Running"]:
            raise CapacityUnavailable("the container does not run", machine_id=machine_id)
        now_ms = self._clock.now_ms()
        silence_ms = machine.expires_at_ms - machine.created_at_ms
        if now_ms - self._alive_at_ms.get(machine_id, 0) >= silence_ms // 4:
            code = await self._run_script(engine, machine_id, ALIVE_SCRIPT)
            if code:
                raise CapacityUnavailable(
                    "commands do not run in the container: does its image have /bin/sh, and may"
                    " its user write to /tmp?",
                    machine_id=machine_id,
                    exit_code=code,
                )
            self._alive_at_ms[machine_id] = now_ms
        return MachineFound(work_folder=WORK_FOLDER)

    async def exec(self, machine_id: MachineId, command: MachineCommand) -> Execution:
        """Run a command through the engine; see `CommandProvider.exec`."""
        engine = self._engine_for(machine_id)
        if await self._look(engine, machine_id) is None:
            raise CapacityUnavailable("there is no such container", machine_id=machine_id)
        return await self._exec(engine, machine_id, command_script(command), command)

    async def clear(self, machine_id: MachineId, folder: str) -> None:
        """Kill and remove what is under a folder; see `CommandProvider.clear`."""
        engine = self._engine_for(machine_id)
        code = await self._run_script(engine, machine_id, clear_script(folder))
        if code:
            why = "a process does not end" if code == CLEARED_NOT else f"exit code {code}"
            raise OutcomeUnknown("the folder was not cleared", folder=folder, why=why)

    async def _exec(
        self,
        engine: EngineApi,
        machine_id: MachineId,
        script: str,
        command: MachineCommand | None,
    ) -> DockerExecution:
        try:
            made = await engine.call(
                "POST",
                f"/containers/{machine_id}/exec",
                body={
                    "AttachStdin": True,
                    "AttachStdout": True,
                    "AttachStderr": True,
                    "Tty": False,
                    "Cmd": boot_argv(script),
                },
            )
        except (Absent, Conflict) as error:
            raise CapacityUnavailable(
                "the container does not run", machine_id=machine_id, why=str(error)
            ) from error
        streams = await engine.start_exec(made["Id"])

        async def run_script(text: str) -> int:
            return await self._run_script(engine, machine_id, text)

        execution = DockerExecution(engine, machine_id, made["Id"], command, streams, run_script)
        try:
            await execution.write(script.encode())
            if command is None or not command.has_stdin:
                await execution.write_eof()
        except asyncio.CancelledError:
            execution.abandon()
            raise
        return execution

    async def _run_script(self, engine: EngineApi, machine_id: MachineId, script: str) -> int:
        """Run a script of ours to its end; return its exit code."""
        execution = await self._exec(engine, machine_id, script, None)
        try:
            while await execution.read() is not None:
                pass
            return (await execution.wait()).exit_code or 0
        finally:
            await execution.close()

    # -- containers --------------------------------------------------------------------------

    async def _create(
        self,
        engine: EngineApi,
        machine_id: MachineId,
        request: LaunchRequest,
        options: DockerOptions,
    ) -> None:
        silence_s = max(1, request.silence_ms_max // 1_000)
        body: dict[str, Any] = {
            "Image": options.image,
            "Entrypoint": ["/bin/sh", "-c", KEEPER, "hostler", str(silence_s), WORK_FOLDER],
            "Env": [f"{name}={value}" for name, value in sorted(options.env.items())],
            "User": options.user,
            "Labels": {**options.labels, **labels_of(request, self._clock.now_ms())},
            "HostConfig": host_config(options, request.offer.shape),
        }
        try:
            await self._create_once(engine, machine_id, body)
        except Absent as error:
            if options.pull == "never":
                raise RequestInvalid(
                    "the image is not there: pull it, or set `pull: missing`", image=options.image
                ) from error
            await engine.pull(options.image)
            try:
                await self._create_once(engine, machine_id, body)
            except Absent as still:
                raise RequestInvalid("the image is not there", image=options.image) from still

    async def _create_once(
        self, engine: EngineApi, machine_id: MachineId, body: dict[str, Any]
    ) -> None:
        try:
            await engine.call("POST", "/containers/create", body=body, name=machine_id)
        except Conflict:
            return  # the same launch, made by another call, was quicker
        except CapacityUnavailable:
            # Podman says so too, some moments before it shows the other's container.
            for _ in range(TWIN_TRIES_MAX):
                if await self._look(engine, machine_id) is not None:
                    return
                await asyncio.sleep(0.05)
            raise

    async def _start(self, engine: EngineApi, machine_id: MachineId) -> None:
        try:
            await engine.call("POST", f"/containers/{machine_id}/start")
        except (Absent, Conflict) as error:
            raise OutcomeUnknown(
                "the container was changed as it began", machine_id=machine_id, why=str(error)
            ) from error
        except OutcomeUnknown:
            raise
        except ProviderFailed:
            # It surely does not run: let there be none either.
            await self.stop(machine_id)
            raise

    async def _check_quota(self, engine: EngineApi, options: DockerOptions) -> None:
        limit = options.machines_max
        if limit is not None and len(await self._list(engine)) >= limit:
            raise QuotaExceeded(
                "there are as many containers as the tier's options allow",
                scope="engine",
                machines_max=limit,
            )

    async def _look(self, engine: EngineApi, machine_id: str) -> Machine | None:
        container = await engine.inspect(machine_id)
        return None if container is None else machine_of(container, self._fleet_id)

    async def _list(self, engine: EngineApi) -> list[Machine]:
        filters = json.dumps({"label": [f"{FLEET_LABEL}={self._fleet_id}"]})
        rows = await engine.call("GET", "/containers/json", all="true", filters=filters)
        names = sorted(str(row["Names"][0]).removeprefix("/") for row in rows if row["Names"])
        gate = asyncio.Semaphore(LOOK_COUNT_MAX)

        async def look(name: str) -> Machine | None:
            async with gate:
                return await self._look(engine, name)

        found = await asyncio.gather(*[look(name) for name in names])
        return [machine for machine in found if machine is not None]

    # -- engines -----------------------------------------------------------------------------

    def _engine(self, socket: str) -> EngineApi:
        if socket not in self._engines:
            self._engines[socket] = EngineApi(socket)
        return self._engines[socket]

    def _engine_of(self, machine_id: str) -> EngineApi | None:
        """Return the engine that a container is on; `None`: on none that we ever used."""
        for socket in self._remembered():
            if machine_id.startswith(f"{engine_mark(socket)}-") and "/" not in machine_id:
                return self._engine(socket)
        return None

    def _engine_for(self, machine_id: str) -> EngineApi:
        engine = self._engine_of(machine_id)
        if engine is None:
            raise CapacityUnavailable("there is no such container", machine_id=machine_id)
        return engine

    async def _remember(self, engine: EngineApi) -> None:
        """Note an engine that answers, before anything is made there.

        A tier may leave the configuration while a container of it runs, so lists look at every
        engine that was ever used, in later lives too, until nothing of ours is there.
        """
        file = self._memory / engine_mark(engine.socket)
        if not file.exists():
            await engine.call("GET", "/_ping")
            self._memory.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = file.with_suffix(".new")
            draft.write_text(engine.socket)
            draft.replace(file)
        self._used.add(engine.socket)

    def _remembered(self) -> list[str]:
        files: list[Path] = sorted(self._memory.glob("hostler-????????"))
        return [file.read_text() for file in files]


PROVIDER: Final = ProviderKind(
    name="docker",
    api_version=1,
    options_type=DockerOptions,
    open=DockerProvider,
    has_agents=False,
    check=self_check,
    problems=problems_of,
)
"""What the entry point leads to."""
