"""What `hostler agent` offers, read from its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from hostler.agent.inventory import DeclaredShape
    from hostler.wire.work import Capability, Device


def declared_shape(
    capacity: int | None,
    cores_milli: int | None,
    memory_bytes: int | None,
    capabilities: list[str],
    devices: list[str],
) -> DeclaredShape:
    """Put together what the operator says the node has; `None` is measured instead.

    Raises:
        CommandError: A capability or a device is not written as it must be.
    """
    from hostler.agent.inventory import DeclaredShape

    return DeclaredShape(
        capacity=capacity,
        cores_milli=cores_milli,
        memory_bytes=memory_bytes,
        capabilities=[_capability(text) for text in capabilities],
        devices=[_device(text) for text in devices],
    )


def _capability(text: str) -> Capability:
    """Read `gpu`, `gpu=2` or `gpu=2,model=a10`."""
    from hostler.wire.work import Capability

    head, *rest = text.split(",")
    name, has_count, count = head.partition("=")
    attributes = dict(_pair(part, text) for part in rest)
    if not name or (has_count and not count.isdecimal()):
        raise CommandError(
            f"{text} is not a capability such as gpu, gpu=2 or gpu=2,model=a10",
            code=ExitCode.BAD_INPUT,
        )
    return Capability(name=name, count=int(count) if has_count else 1, attributes={**attributes})


def _pair(part: str, text: str) -> tuple[str, str]:
    name, equals, value = part.partition("=")
    if not name or not equals:
        raise CommandError(f"{part} in {text} is not KEY=VALUE", code=ExitCode.BAD_INPUT)
    return name, value


def _device(text: str) -> Device:
    from hostler.wire.work import Device

    kind, colon, device_id = text.partition(":")
    if not kind or not colon or not device_id:
        raise CommandError(f"{text} is not KIND:ID, such as capture:0", code=ExitCode.BAD_INPUT)
    return Device(kind=kind, id=device_id)
