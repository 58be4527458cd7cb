"""What a job finds in its environment, and how arguments name parts of it. Pure.

A job starts from a clean environment: `PATH`, `HOME` and `TMPDIR` (its own folders), `LANG`, its
own `env`, and `HOSTLER_*` variables that say who it is. `${HOSTLER_NAME}` in an argument or in a
value of `env` stands for the variable; nothing else is replaced, and there is no shell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from hostler.agent.runtime import configs
from hostler.base.errors import Rejected
from hostler.wire.agent import ExecStart, StartAllocation
from hostler.wire.work import Launch

PATH_DEFAULT: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

ALLOCATION_MARK: Final = "HOSTLER_ALLOCATION_FOLDER"
"""Names the allocation's folder; unique on a machine, so strays are found by it."""

LEASE_MARK: Final = "HOSTLER_LEASE_FOLDER"
"""Names the lease's folder; as above."""

GPU: Final = "gpu"
"""The kind of device whose ids are what `CUDA_VISIBLE_DEVICES` takes: an index or a UUID."""

_REFERENCE: Final = re.compile(r"\$\{(HOSTLER_[A-Z0-9_]*)\}")


class NodeIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What all work on this node shares."""

    node_id: str
    machine_id: str | None
    path: str = PATH_DEFAULT

    def variables(self) -> dict[str, str]:
        """Give the node's own `HOSTLER_*` variables."""
        found = {"HOSTLER_NODE_ID": self.node_id}
        if self.machine_id is not None:
            found["HOSTLER_MACHINE_ID"] = self.machine_id
        return found


ROLE_FILE: Final = "role"
"""In an allocation's folder: the role that it has now."""


def work_folder(folder: Path) -> Path:
    """Where a job runs: beside the supervisor's files, not among them."""
    return folder / "work"


def of_allocation(
    start: StartAllocation, folder: Path, node: NodeIdentity, *, notice: Path
) -> dict[str, str]:
    """Make the environment of an allocation.

    Raises:
        Rejected: A value names a variable that does not exist.
    """
    launch, who = start.launch, start.launch.identity
    identity = node.variables() | {
        "HOSTLER_FLEET_ID": who.fleet_id,
        "HOSTLER_BUNDLE": who.bundle_id,
        "HOSTLER_JOB": who.job,
        "HOSTLER_REPLICA_INDEX": str(who.replica_index),
        "HOSTLER_REPLICA": who.replica_id,
        "HOSTLER_ROLE": who.role,
        "HOSTLER_ALLOCATION_ID": start.allocation_id,
        "HOSTLER_EPOCH": str(start.epoch),
        "HOSTLER_POOL": who.pool,
        "HOSTLER_TIER": who.tier,
        "HOSTLER_ROLE_FILE": str(folder / ROLE_FILE),
        "HOSTLER_CONFIG": str(folder / configs.NAME),
        "HOSTLER_NOTICE": str(notice),
        ALLOCATION_MARK: str(work_folder(folder)),
    }
    for kind, ids in launch.devices.items():
        name = re.sub(r"[^A-Z0-9]", "_", kind.upper())
        identity[f"HOSTLER_DEVICE_{name}"] = ",".join(ids)
    own = {name: substitute(value, identity) for name, value in launch.env.items()}
    return _basis(work_folder(folder), folder / "tmp", node) | _visible(launch) | own | identity


def _visible(launch: Launch) -> dict[str, str]:
    """Show CUDA the GPUs that were given, and no other; a job may say otherwise in its `env`."""
    gpus = launch.devices.get(GPU)
    return {} if gpus is None else {"CUDA_VISIBLE_DEVICES": ",".join(gpus)}


def of_lease(start: ExecStart, folder: Path, node: NodeIdentity) -> dict[str, str]:
    """Make the environment of a leased command.

    Raises:
        Rejected: A value names a variable that does not exist.
    """
    identity = node.variables() | {
        "HOSTLER_LEASE_ID": start.lease_id,
        "HOSTLER_EPOCH": str(start.lease_epoch),
        "HOSTLER_LEASE_EPOCH": str(start.lease_epoch),
        LEASE_MARK: str(folder),
    }
    own = {name: substitute(value, identity) for name, value in start.env.items()}
    return _basis(folder, folder / "tmp", node) | own | identity


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """Replace each `${HOSTLER_NAME}`.

    Raises:
        Rejected: The variable does not exist; the message says which there are.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in variables:
            known = ", ".join(sorted(each for each in variables if each.startswith("HOSTLER_")))
            raise Rejected("variable_unknown", f"${{{name}}} does not exist; there are {known}")
        return variables[name]

    return _REFERENCE.sub(value_of, text)


def _basis(home: Path, temporary: Path, node: NodeIdentity) -> dict[str, str]:
    return {"PATH": node.path, "HOME": str(home), "TMPDIR": str(temporary), "LANG": "C.UTF-8"}
