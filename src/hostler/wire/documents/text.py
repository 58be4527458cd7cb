"""Durations, sizes, money and names as text in documents, and how a schema and a checker see them.

A field of a document that people write keeps what they wrote (`30s`); whoever translates the
document parses it with `hostler.base.units`. The checker has parsed it before, so that cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from msgspec import Meta

from hostler.base.units import (
    cores_milli,
    duration_ms,
    local_time_ms,
    machine_time_ms,
    money_microusd,
    size_bytes,
    time_of_day_ms,
)

TEXT_KIND: Final = "text_kind"
"""Key in a type's `Meta.extra` that names the parser below."""

PARSERS: Final[dict[str, Callable[[str], int]]] = {
    "duration": duration_ms,
    "machine time": machine_time_ms,
    "size": size_bytes,
    "money": money_microusd,
    "cores": cores_milli,
    "time_of_day": time_of_day_ms,
    "local_time": local_time_ms,
}
"""How each kind of text is parsed; a `Rejected` of the parser is the problem's message."""

NAME_PATTERN: Final = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
"""DNS labels (RFC 1035 2.3.4: 63 characters), so that a name fits wherever a host name does."""

Duration = Annotated[
    str,
    Meta(
        description="A duration such as 250ms, 30s, 5m, 1h30m or 2d.",
        extra={TEXT_KIND: "duration"},
        extra_json_schema={"pattern": r"^([0-9]{1,15}(ms|s|m|h|d))+$"},
    ),
]
Size = Annotated[
    str,
    Meta(
        description="A size such as 512, 64MiB or 2GB.",
        extra={TEXT_KIND: "size"},
        extra_json_schema={
            "type": ["string", "integer"],
            "pattern": r"^[0-9]{1,15} *(([KMGT]i?)?B)?$",
            "minimum": 0,
        },
    ),
]
Money = Annotated[
    str,
    Meta(
        description="Money such as 0.35 or 0.35 USD, in the fleet's currency.",
        extra={TEXT_KIND: "money"},
        extra_json_schema={
            "type": ["string", "number"],
            "pattern": r"^[0-9]{1,9}(\.[0-9]{1,6})?( *[A-Z]{3})?$",
            "minimum": 0,
        },
    ),
]
MachineTime = Annotated[
    str,
    Meta(
        description="Time of machines or leases together, such as 90m, 200h or 1000d.",
        extra={TEXT_KIND: "machine time"},
        extra_json_schema={"pattern": r"^([0-9]{1,15}(ms|s|m|h|d))+$"},
    ),
]
Currency = Annotated[
    str,
    Meta(description="Three letters such as USD or EUR.", pattern=r"^[A-Z]{3}$"),
]
Cores = Annotated[
    str,
    Meta(
        description="CPU cores such as 2, 0.5 or 500m.",
        extra={TEXT_KIND: "cores"},
        extra_json_schema={
            "type": ["string", "number"],
            "pattern": r"^([0-9]{1,9}m|[0-9]{1,9}(\.[0-9]{1,3})?)$",
            "minimum": 0,
        },
    ),
]
TimeOfDay = Annotated[
    str,
    Meta(
        description="A time on the wall clock, from 00:00 to 24:00.",
        extra={TEXT_KIND: "time_of_day"},
        extra_json_schema={"pattern": r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"},
    ),
]
LocalTime = Annotated[
    str,
    Meta(
        description="A date and time on the wall clock, such as 2026-12-01T20:00.",
        extra={TEXT_KIND: "local_time"},
        extra_json_schema={"pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}$"},
    ),
]
Name = Annotated[
    str,
    Meta(
        description="Lower-case letters, digits and hyphens, 63 at most.",
        pattern=NAME_PATTERN,
    ),
]
COUNT_MAX: Final = 1_000_000_000
"""More of anything than a fleet has; a mistyped number is caught by it."""

Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
CountFromOne = Annotated[int, Meta(ge=1, le=COUNT_MAX)]
Port = Annotated[int, Meta(ge=1, le=65_535)]
