"""Commands under a lease: one WebSocket each, JSON frames, killed when the client leaves."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
from litestar import websocket

from hostler.api.auth import ROLE_KEY, authorize
from hostler.api.context import Api, Caller, api_of, caller_of
from hostler.api.errors import Denied
from hostler.api.gateway import new_request_id, origin_of, record_of, submit
from hostler.api.http import path_text
from hostler.api.links.socket import CLOSE_NORMAL, CLOSE_PROTOCOL, AnySocket, Socket, SocketClosed
from hostler.api.links.streams import AgentStream, StreamBroken
from hostler.base.errors import HostlerError
from hostler.core.asking import AccessNoted
from hostler.core.inputs import HeartbeatLease
from hostler.model import Lease
from hostler.model.lease import LeasePhase
from hostler.model.token import Role
from hostler.ports.agents import AgentUnreachable
from hostler.wire.agent import ExecEnded, ExecOutput
from hostler.wire.http import RunExit, RunFromClient, RunInput, RunOutput, RunSignal, RunStart

_FROM_CLIENT: Final[msgspec.json.Decoder[RunFromClient]] = msgspec.json.Decoder(RunFromClient)
_ENCODER: Final = msgspec.json.Encoder()

START_MS_MAX: Final = 10_000
"""How long a client may take to say what to run."""


@websocket("/v1/leases/{lease_id:str}/exec", opt={ROLE_KEY: Role.LESSEE})
async def run_command(socket: AnySocket) -> None:
    """Run one command on the leased node; the first frame says which."""
    api, connection = api_of(socket), Socket(socket)
    try:
        await authorize(socket)
        lease_id, epoch = path_text(socket, "lease_id"), socket.query_params.get("epoch")
        lease = _held(api, caller_of(socket), lease_id, epoch)
        if lease.holder != caller_of(socket).principal:
            await _note(api, socket, lease)
        if not lease.is_acknowledged:
            await _acknowledge(api, caller_of(socket), lease)
    except HostlerError as error:
        api.refusals.note(socket, error)
        await connection.deny(error)
        return
    try:
        await connection.accept()
        await _serve(api, connection, lease)
    except (msgspec.MsgspecError, TimeoutError) as error:
        await connection.close(CLOSE_PROTOCOL, str(error) or "no command in time")
    except SocketClosed:
        return


def _held(api: Api, caller: Caller, lease_id: str, epoch: str | None) -> Lease:
    """Return the lease if the caller may run commands under it.

    Raises:
        Denied: Not there, not theirs, not held, or held under another epoch.
    """
    lease = record_of(api, Lease, lease_id)
    if lease.holder != caller.principal and not caller.may(Role.OPERATOR):
        raise Denied(403, "not_holder", f"lease {lease_id} belongs to another principal")
    if lease.phase is not LeasePhase.HELD or lease.node_id is None:
        raise Denied(409, "lease_not_held", f"lease {lease_id} is {lease.phase.value}")
    if epoch is not None and epoch != str(lease.epoch):
        raise Denied(409, "epoch_stale", f"lease {lease_id} has epoch {lease.epoch}, not {epoch}")
    return lease


async def _note(api: Api, socket: AnySocket, lease: Lease) -> None:
    """Have it in the audit that somebody runs commands under the lease of somebody else."""
    caller = caller_of(socket)
    await api.engine.observe(
        AccessNoted(
            principal=caller.principal,
            origin=origin_of(socket, caller),
            action="run_command",
            about={"lease": lease.lease_id, "node": str(lease.node_id)},
        )
    )


async def _acknowledge(api: Api, caller: Caller, lease: Lease) -> None:
    """Take a lease up for good before anything runs under it: it is not taken back as unused."""
    heartbeat = HeartbeatLease(
        request_id=new_request_id(),
        principal=caller.principal,
        lease_id=lease.lease_id,
        epoch=lease.epoch,
        is_operator=caller.may(Role.OPERATOR),
    )
    await submit(api, heartbeat)


async def _serve(api: Api, connection: Socket, lease: Lease) -> None:
    async with asyncio.timeout(START_MS_MAX / 1_000):
        start = _FROM_CLIENT.decode(await connection.receive())
    if not isinstance(start, RunStart) or lease.node_id is None:
        await connection.close(CLOSE_PROTOCOL, "the first frame is `start`")
        return
    try:
        async with api.links.command(lease.node_id, lease.lease_id, lease.epoch, start) as stream:
            await _pump(api, lease, connection, stream)
    except (AgentUnreachable, StreamBroken) as error:
        await connection.send(_text(RunExit(error=error.message)))
    await connection.close(CLOSE_NORMAL)


async def _pump(api: Api, lease: Lease, connection: Socket, stream: AgentStream) -> None:
    """Carry frames both ways until the command ends or the client leaves."""
    tasks = [
        asyncio.create_task(_from_client(connection, stream)),
        asyncio.create_task(_to_client(api, lease, connection, stream)),
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _from_client(connection: Socket, stream: AgentStream) -> None:
    while True:
        match _FROM_CLIENT.decode(await connection.receive()):
            case RunInput(data=data, eof=eof):
                # Waiting for room here stops reading from the client, which stops the client.
                await stream.write(data, eof=eof)
            case RunSignal(signal=name):
                stream.signal(name)
            case RunStart():
                raise msgspec.ValidationError("one connection runs one command")


async def _to_client(api: Api, lease: Lease, connection: Socket, stream: AgentStream) -> None:
    while True:
        try:
            message = await stream.next()
        except StreamBroken as broken:
            over = _lease_over(api, lease)
            await connection.send(_text(over or RunExit(error=broken.message)))
            return
        match message:
            case ExecOutput(stream=name, data=data):
                await connection.send(_text(RunOutput(stream=name, data=data)))
            case ExecEnded(exit_code=int(exit_code)):
                await connection.send(_text(RunExit(exit_code=exit_code)))
                return
            case ExecEnded(signal=name, error=error):
                # Being busy is no failure; all else that an agent reports here is (L-370).
                is_failure = error is not None and error != "too_many_commands"
                ended = RunExit(signal=name, error=error, is_node_failure=is_failure)
                await connection.send(_text(_lease_over(api, lease) or ended))
                return
            case _:
                await connection.send(_text(RunExit(error="the node sent something else")))
                return


def _lease_over(api: Api, lease: Lease) -> RunExit | None:
    """Say that a command was ended because its lease was, if it is."""
    now = api.engine.peek(Lease.KIND, lease.lease_id)
    if isinstance(now, Lease) and now.phase is LeasePhase.HELD:
        return None
    outcome = now.outcome.value if isinstance(now, Lease) and now.outcome else "settled"
    return RunExit(error=f"the lease has ended: {outcome}", is_lease_over=True)


def _text(frame: RunOutput | RunExit) -> str:
    return _ENCODER.encode(frame).decode()


ROUTES = [run_command]
