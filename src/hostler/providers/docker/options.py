"""A tier's `options` for containers, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from hostler.model.shape import Shape
from hostler.providers.docker.tags import PREFIX

SOCKETS: Final = ("/var/run/docker.sock", "/run/podman/podman.sock")
"""Where engines listen by default (docs.docker.com "dockerd", podman-system-service(1))."""


class Ulimit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of one resource of a process (getrlimit(2))."""

    soft: int
    hard: int


class DockerOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tier's `options` for this provider."""

    image: str
    """What containers are made from."""
    socket: str = ""
    """The engine's Unix socket; left out: Docker's, or else podman's."""
    pull: Literal["missing", "never"] = "missing"
    """Whether an image that is not there is pulled."""
    machines_max: int | None = None
    """Containers of this fleet at once on the engine; left out: as many as the tiers allow."""
    user: str = ""
    """Whom commands run as; left out: as the image says."""
    network: str = ""
    """`none`, `host`, or a network's name; left out: the engine's default. `host` gives up the
    isolation of the network."""
    env: dict[str, str] = {}
    labels: dict[str, str] = {}
    """The operator's own; `hostler.` is ours."""
    mounts: list[str] = []
    """Folders of the host, as `/there:/here` or `/there:/here:ro`. Each gives up isolation."""
    privileged: bool = False
    """Gives up isolation altogether."""
    new_privileges: bool = False
    """Whether programs may gain privileges, as sudo does."""
    cap_add: list[str] = []
    cap_drop: list[str] = []
    pids_max: int | None = None
    """Processes at once; left out: as the engine says."""
    shm_bytes: int | None = None
    """Size of `/dev/shm`; left out: as the engine says."""
    ulimits: dict[str, Ulimit] = {}
    """By name, such as `nofile`; left out: as the engine says."""
    runtime: str = ""
    """Such as `runsc` or `kata`; left out: the engine's default."""


def socket_of(options: DockerOptions) -> str:
    """Return the path of the engine's socket."""
    if options.socket:
        return options.socket
    return next((path for path in SOCKETS if os.path.exists(path)), SOCKETS[0])  # noqa: PTH110 - a text


def problems_of(options: msgspec.Struct) -> Sequence[str]:
    """Return what is wrong with options that fit their type."""
    if not isinstance(options, DockerOptions):
        return ()
    found = []
    if not options.image:
        found.append("image: name the image that containers are made from")
    if options.socket and not options.socket.startswith("/"):
        found.append("socket: this is the absolute path of a Unix socket, such as /run/docker.sock")
    found += [
        f"labels.{name}: labels that begin with {PREFIX} are ours; choose another name"
        for name in options.labels
        if name.startswith(PREFIX)
    ]
    found += [
        f"mounts[{index}]: a mount looks like /on/the/host:/in/the/container or with :ro at its end"
        for index, mount in enumerate(options.mounts)
        if not _is_mount(mount)
    ]
    return found


def _is_mount(text: str) -> bool:
    match text.split(":"):
        case [there, here] | [there, here, "ro" | "rw"]:
            return there.startswith("/") and here.startswith("/")
        case _:
            return False


def host_config(options: DockerOptions, shape: Shape) -> Mapping[str, Any]:
    """Return the engine's `HostConfig`: limits of the offer, and what the options open."""
    found: dict[str, Any] = {
        "Privileged": options.privileged,
        "Binds": list(options.mounts),
        "RestartPolicy": {"Name": "no"},
        "CapAdd": list(options.cap_add),
        "CapDrop": list(options.cap_drop),
        "SecurityOpt": [] if options.new_privileges else ["no-new-privileges"],
        "Ulimits": [
            {"Name": name, "Soft": limit.soft, "Hard": limit.hard}
            for name, limit in sorted(options.ulimits.items())
        ],
    }
    given = {
        "NetworkMode": options.network or None,
        "Memory": shape.memory_bytes,
        "NanoCpus": None if shape.cores_milli is None else shape.cores_milli * 1_000_000,
        "PidsLimit": options.pids_max,
        "ShmSize": options.shm_bytes,
        "Runtime": options.runtime or None,
    }
    return found | {name: value for name, value in given.items() if value is not None}
