"""What `hostler providers check docker` looks at: the engine, and the image."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hostler.ports.provider import ProviderContext, ProviderFailed, SelfCheck
from hostler.providers.docker.engine_api import Absent, EngineApi
from hostler.providers.docker.options import DockerOptions, socket_of


async def self_check(context: ProviderContext, options: msgspec.Struct) -> Sequence[SelfCheck]:  # noqa: ARG001 - as the port says
    """Say whether the engine answers and has the image; see `ProviderKind.check`."""
    if not isinstance(options, DockerOptions):
        return ()
    socket = socket_of(options)
    engine = EngineApi(socket)
    try:
        version = await engine.call("GET", "/version")
        found = [
            SelfCheck(
                subject=f"engine {socket}",
                is_good=True,
                detail=f"version {version.get('Version', '?')}, API {version.get('ApiVersion')}",
            )
        ]
        return [*found, await _image(engine, options)]
    except (ProviderFailed, Absent) as error:
        return [SelfCheck(subject=f"engine {socket}", is_good=False, detail=str(error))]
    finally:
        await engine.close()


async def _image(engine: EngineApi, options: DockerOptions) -> SelfCheck:
    subject = f"image {options.image}"
    try:
        image = await engine.call("GET", f"/images/{options.image}/json")
    except Absent:
        is_pulled = options.pull == "missing"
        detail = "not there; the first launch pulls it" if is_pulled else "not there: pull it"
        return SelfCheck(subject=subject, is_good=is_pulled, detail=detail)
    return SelfCheck(subject=subject, is_good=True, detail=str(image.get("Id", ""))[:19])
