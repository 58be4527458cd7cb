"""The name of a box of our own: which host it is on, and how its processes are known there.

An agent that nobody launched gives itself a machine id. It says on which kernel and in which
process namespace the agent runs, so that whoever looks for its processes knows whether looking
here can tell anything; and it is in the environment of the agent and of all that it starts.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

BOX_PREFIX: Final = "box-"


def host_mark() -> str:
    """Return what tells this running kernel and this process namespace from all others."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = Path("/proc/self/ns/pid").readlink()
    return hashlib.blake2b(f"{boot_id}\x00{namespace}".encode(), digest_size=6).hexdigest()


def box_id(data_folder: Path) -> str:
    """Return the machine id of the agent of a data folder, the same until the host reboots."""
    told = str(data_folder.resolve()).encode()
    folder_mark = hashlib.blake2b(told, digest_size=6).hexdigest()
    return f"{BOX_PREFIX}{host_mark()}-{folder_mark}"


def is_box(machine_id: str) -> bool:
    """Say whether a machine id is one that an agent gave itself."""
    return machine_id.startswith(BOX_PREFIX)


def is_on_this_host(machine_id: str) -> bool:
    """Say whether looking at this host's processes can tell whether the box runs."""
    return machine_id.startswith(f"{BOX_PREFIX}{host_mark()}-")
