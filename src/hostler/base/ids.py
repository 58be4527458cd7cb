"""Ids: what they are called in types, and how the numbered ones look."""

from __future__ import annotations

from typing import Final, NewType

NodeId = NewType("NodeId", str)
"""`n-000001`; never used twice."""
MachineId = NewType("MachineId", str)
"""The provider's own name of a machine."""
AllocationId = NewType("AllocationId", str)
"""`a-000001`."""
LeaseId = NewType("LeaseId", str)
"""`l-000001`."""
BundleId = NewType("BundleId", str)
"""The bundle's name, chosen by who submits it."""
ReplicaId = NewType("ReplicaId", str)
"""`bundle/job/0`."""
CommandId = NewType("CommandId", str)
"""Made of what the command is about: `n-000001/launch/1`."""


def numbered(prefix: str, number: int) -> str:
    """Return an id such as `n-000042`; wider than six digits where the number needs it."""
    return f"{prefix}-{number:06d}"


def replica_id(bundle_id: str, job: str, index: int) -> ReplicaId:
    """Return the id of one copy of a job."""
    return ReplicaId(f"{bundle_id}/{job}/{index}")


PRIMARY: Final = "primary"
BACKUP: Final = "backup"


def role_of(index: int) -> str:
    """Return the role that a replica begins with: primary, backup, then `replica-2` and on."""
    return (PRIMARY, BACKUP)[index] if index < 2 else f"replica-{index}"


def rank_of(role: str) -> int:
    """Return the index of the replica that begins with a role."""
    if role in (PRIMARY, BACKUP):
        return int(role == BACKUP)
    return int(role.removeprefix("replica-"))
