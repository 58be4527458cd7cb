"""The labels of a container, there from its creation, and its name, made of its token."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from hostler.base.ids import MachineId, NodeId
from hostler.ports.provider import LaunchRequest, Machine

PREFIX: Final = "hostler."

FLEET_LABEL: Final = f"{PREFIX}fleet"

_NUMBERS: Final = ("epoch", "created_at_ms", "expires_at_ms")
_TEXTS: Final = ("node", "token", "pool", "tier")


def machine_id_of(socket: str, fleet_id: str, token: str) -> MachineId:
    """Return the one name of the container that a launch makes, with its engine's mark in it."""
    told = f"{fleet_id}\x00{token}".encode()
    return MachineId(f"{engine_mark(socket)}-{hashlib.blake2b(told, digest_size=10).hexdigest()}")


def engine_mark(socket: str) -> str:
    """Return what the names of all our containers on one engine begin with."""
    return f"hostler-{hashlib.blake2b(socket.encode(), digest_size=4).hexdigest()}"


def labels_of(request: LaunchRequest, now_ms: int) -> dict[str, str]:
    """Return the labels of a new container."""
    return {
        FLEET_LABEL: request.fleet_id,
        f"{PREFIX}node": request.node_id,
        f"{PREFIX}epoch": str(request.epoch),
        f"{PREFIX}token": request.token,
        f"{PREFIX}pool": request.pool,
        f"{PREFIX}tier": request.tier,
        f"{PREFIX}created_at_ms": str(now_ms),
        f"{PREFIX}expires_at_ms": str(now_ms + request.silence_ms_max),
    }


def machine_of(container: Mapping[str, Any], fleet_id: str) -> Machine | None:
    """Read what an engine tells of a container; `None`: it is not this fleet's."""
    labels = container["Config"].get("Labels") or {}
    if labels.get(FLEET_LABEL) != fleet_id:
        return None
    texts = {name: str(labels.get(f"{PREFIX}{name}", "")) for name in _TEXTS}
    numbers = {name: _number(labels.get(f"{PREFIX}{name}")) for name in _NUMBERS}
    name = str(container["Name"]).removeprefix("/")
    return Machine(
        machine_id=MachineId(name),
        fleet_id=fleet_id,
        node_id=NodeId(texts["node"]),
        epoch=numbers["epoch"],
        token=texts["token"],
        pool=texts["pool"],
        tier=texts["tier"],
        created_at_ms=numbers["created_at_ms"],
        expires_at_ms=numbers["expires_at_ms"],
        hostname=str(container["Config"].get("Hostname") or name),
        started_at_ms=instant_ms(str(container["State"].get("StartedAt") or "")),
    )


def has_ended(container: Mapping[str, Any]) -> bool:
    """Say whether a container has run and does not any more: it costs nothing but its files."""
    return container["State"]["Status"] in ("exited", "dead", "stopped", "removing")


def _number(text: Any) -> int:  # noqa: ANN401 - whatever JSON holds
    return int(text) if isinstance(text, str) and text.isdecimal() else 0


def instant_ms(text: str) -> int | None:
    """Read an engine's instant; the year 1 says that there was none yet."""
    if not text or text.startswith("0001-"):
        return None
    # Engines write up to nine decimals, Python reads six.
    head, _, rest = text.rstrip("Z").partition(".")
    digits = "".join(one for one in rest.partition("+")[0] if one.isdigit())[:6]
    return int(datetime.fromisoformat(f"{head}.{digits or '0'}+00:00").timestamp() * 1_000)
