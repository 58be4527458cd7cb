"""What `hostler providers check ssh` looks at: each host, whether it lets us in and is free."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from hostler.ports.provider import ProviderContext, ProviderFailed, SelfCheck
from hostler.providers.ssh.connections import HostConnections
from hostler.providers.ssh.execution import run_script
from hostler.providers.ssh.options import Host, SshOptions, hosts_of
from hostler.providers.ssh.scripts import look_script, state_script


async def self_check(context: ProviderContext, options: msgspec.Struct) -> Sequence[SelfCheck]:  # noqa: ARG001 - as the port says
    """Log in to every host and look who has it; see `ProviderKind.check`."""
    if not isinstance(options, SshOptions):
        return ()
    return await asyncio.gather(*[_check(host) for host in hosts_of(options)])


async def _check(host: Host) -> SelfCheck:
    connections = HostConnections(host)
    subject = f"host {host.name}"
    try:
        code, told = await run_script(connections, state_script(host))
        _, label = await run_script(connections, look_script(host))
    except ProviderFailed as failure:
        return SelfCheck(subject=subject, is_good=False, detail=str(failure))
    finally:
        await connections.close()
    if code or told.strip():
        return SelfCheck(subject=subject, is_good=False, detail=told.strip() or f"exit code {code}")
    return SelfCheck(subject=subject, is_good=True, detail="in use" if label else "free")
