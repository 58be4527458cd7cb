"""Amounts: what work needs, as people write it."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.base.units import format_size
from hostler.model.shape import WHOLE_MILLI, Requirement


def amount_text(name: str, amount: int) -> str:
    """Return an amount of something with its name, such as `2 cores` or `capacity 6`."""
    match name:
        case "capacity":
            return f"capacity {amount}"
        case "cores_milli":
            return f"{amount / 1_000:g} cores"
        case "memory_bytes":
            return f"{format_size(amount)} of memory"
        case _:
            return f"{amount} {name}"


def requirement_text(requirement: Requirement) -> str:
    """Return what work needs on one line."""
    return ", ".join(_parts(requirement)) or "nothing in particular"


def _parts(requirement: Requirement) -> Iterator[str]:
    for name in ("capacity", "cores_milli", "memory_bytes"):
        amount: int = getattr(requirement, name)
        if amount:
            yield amount_text(name, amount)
    for request in requirement.capabilities:
        asked = [f"{name}={value}" for name, value in sorted(request.attributes.items())]
        wanted = " ".join([*asked, *map(str, request.matches)])
        share = f"{request.milli}/1000 of a " if request.milli < WHOLE_MILLI else ""
        count = "" if share else f"{request.count} "
        yield f"{share}{count}{request.name} {wanted}".rstrip()
