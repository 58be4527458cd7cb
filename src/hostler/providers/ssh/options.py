"""A tier's `options` for hosts, and what is wrong with them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from hostler.base.errors import Rejected
from hostler.base.units import duration_ms


class HostAddress(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one host is reached."""

    host: str
    """Its name or address."""
    port: int = 22
    user: str = ""
    """Whom we log in as; left out: the tier's `user`."""
    host_key: str = ""
    """Its public key, as `ssh-keyscan` prints it without the name: `ssh-ed25519 AAAA...`; left out:
    it is looked up in `known_hosts`."""


class SshOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tier's `options` for this provider."""

    hosts: list[HostAddress]
    key: str
    """The file with our private key, without a passphrase, at the server."""
    user: str = "root"
    known_hosts: str = ""
    """A file as ssh(1) keeps it, at the server, with the keys of hosts that pin none."""
    jump: HostAddress | None = None
    """A host to go through to reach the others; its key is verified like theirs."""
    folder: str = ".hostler"
    """What is ours on a host; below the user's home if it is not absolute."""
    cleanup: list[str] = []
    """A command of yours that cleans a host between two tenants; one that fails puts the host
    into quarantine."""
    cleanup_max: str = "2m"
    """How long that may take."""
    has_own_user: bool = False
    """The user is there for us alone: cleaning ends all of its processes, not only those that can
    be told by their environment."""
    connect: str = "10s"
    """How long a connection may take to stand."""
    connections_max: int = 2
    """Connections to one host at once."""
    sessions_max: int = 8
    """Commands over one connection at once; sshd takes 10 by default (`MaxSessions`)."""
    starts_max: int = 8
    """Hosts that are made ready at once."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One host with everything that is needed to reach and to clean it."""

    address: HostAddress
    user: str
    key: str
    known_hosts: str
    jump: HostAddress | None
    folder: str
    cleanup: tuple[str, ...]
    cleanup_max_ms: int
    has_own_user: bool
    connect_ms: int
    connections_max: int
    sessions_max: int

    @property
    def name(self) -> str:
        """How people know it."""
        return f"{self.user}@{self.address.host}:{self.address.port}"

    @property
    def mark(self) -> str:
        """What the ids of machines on it begin with: who and where, and not how to get there."""
        told = f"{self.name}\x00{self.folder}".encode()
        return f"ssh-{hashlib.blake2b(told, digest_size=5).hexdigest()}"


def hosts_of(options: SshOptions) -> list[Host]:
    """Return a tier's hosts, in its order."""
    return [
        Host(
            address=address,
            user=address.user or options.user,
            key=options.key,
            known_hosts=options.known_hosts,
            jump=options.jump,
            folder=options.folder.rstrip("/"),
            cleanup=tuple(options.cleanup),
            cleanup_max_ms=duration_ms(options.cleanup_max),
            has_own_user=options.has_own_user,
            connect_ms=duration_ms(options.connect),
            connections_max=options.connections_max,
            sessions_max=options.sessions_max,
        )
        for address in options.hosts
    ]


def problems_of(options: msgspec.Struct) -> Sequence[str]:
    """Return what is wrong with options that fit their type."""
    if not isinstance(options, SshOptions):
        return ()
    found = [] if options.hosts else ["hosts: name at least one host"]
    places = [(f"hosts[{index}]", one) for index, one in enumerate(options.hosts)]
    if options.jump is not None:
        places.append(("jump", options.jump))
    for path, address in places:
        found += _address_problems(path, address, options)
    names = [(one.user or options.user, one.host, one.port) for one in options.hosts]
    if len(set(names)) != len(names):
        found.append("hosts: each host is named once; a host is one machine at a time")
    for name in ("connect", "cleanup_max"):
        try:
            duration_ms(getattr(options, name))
        except Rejected as error:
            found.append(f"{name}: {error}")
    found += [
        f"{name}: at least 1"
        for name in ("connections_max", "sessions_max", "starts_max")
        if getattr(options, name) < 1
    ]
    if options.has_own_user and any((one.user or options.user) == "root" for one in options.hosts):
        found.append("has_own_user: not with root, to whom the host's own processes belong")
    if not options.key:
        found.append("key: name the file with the private key; no agent and no default is used")
    if not options.folder.strip("/") or ".." in options.folder.split("/"):
        found.append("folder: a folder of its own, such as .hostler")
    return found


def _address_problems(path: str, address: HostAddress, options: SshOptions) -> list[str]:
    found = []
    if not address.host or address.host.startswith("-") or not address.host.isprintable():
        found.append(f"{path}.host: this is no name or address of a host")
    if not 0 < address.port < 65_536:
        found.append(f"{path}.port: a port is from 1 to 65535")
    if not address.host_key and not options.known_hosts:
        found.append(
            f"{path}: no key of the host is known: give `host_key` (see `ssh-keyscan -t ed25519"
            f" {address.host}`, and compare it with what the host itself says), or `known_hosts`"
        )
    return found
