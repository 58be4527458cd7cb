"""The options file of a machine's agent."""

from __future__ import annotations

from pathlib import Path

from hostler.base.encoding import encode
from hostler.model.shape import Shape
from hostler.ports.provider import LaunchRequest, Machine
from hostler.wire.work import Capability, Device


def agent_options(request: LaunchRequest, label: Machine, data: Path) -> bytes:
    """Write what the agent of a new machine is told: who it is, whom to call, what it has."""
    return encode(
        {
            "server_url": request.server_url,
            "join_token": request.join_token.reveal(),
            "node_id": label.node_id,
            "machine_id": label.machine_id,
            "data_folder": str(data),
            "shape": declared(request.offer.shape),
            "exit_when_silent_ms": request.silence_ms_max,
        }
    )


def declared(shape: Shape) -> dict[str, object]:
    """Write a declared shape as agents are told it; what is not declared the agent looks up."""
    return {
        "capacity": shape.capacity,
        "cores_milli": shape.cores_milli,
        "memory_bytes": shape.memory_bytes,
        "capabilities": [
            Capability(name=one.name, count=one.count, attributes=dict(one.attributes))
            for one in shape.capabilities or ()
        ],
        "devices": [
            Device(kind=one.kind, id=one.device_id, attributes=dict(one.attributes))
            for one in shape.devices
        ],
    }
