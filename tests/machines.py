"""Real machines for tests: an engine with containers, and hosts behind sshd; Debian packages.

What is not installed is, where we are root and there is apt; else the tests that need it say so
and are skipped. Everything that is started here is ended by whoever started it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

PACKAGES = {
    "podman": ("podman", "runc", "busybox-static"),
    "sshd": ("openssh-server", "openssh-client"),
    "ip": ("iproute2",),
    "openssl": ("openssl",),
}
"""By the program that is looked for."""

IMAGE = "localhost/hostler-test"

START_S_MAX = 60.0


def need(program: str) -> str:
    """Return a program's path, installing its packages if need be; skip the test if that fails."""
    path = _found(program)
    if path is None:
        _install(program)
        path = _found(program)
    if path is None:
        names = " ".join(PACKAGES[program])
        pytest.skip(f"{program} is not here and cannot be installed: apt-get install {names}")
    return path


def _found(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@cache
def _install(program: str) -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # Tests run in several processes, and apt in one at a time.
    with Path(tempfile.gettempdir(), "hostler-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _found(program) is not None:
            return
        for argv in (
            ["apt-get", "update", "-qq"],
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES[program]],
        ):
            subprocess.run(argv, env=environment, capture_output=True, check=False, timeout=600)


# -- containers ---------------------------------------------------------------------------------

_CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile=1024:4096", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
"""

_STORAGE_CONF = """
[storage]
driver = "vfs"
graphroot = "{folder}/storage"
runroot = "{folder}/run"
"""


class ContainerEngine:
    """A podman with storage of its own, its Docker-compatible socket, and one small image."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = f"{folder}/engine.sock"
        self._podman = need("podman")
        self._process: subprocess.Popen[bytes] | None = None
        conf, storage = folder / "containers.conf", folder / "storage.conf"
        conf.write_text(_CONTAINERS_CONF)
        storage.write_text(_STORAGE_CONF.format(folder=folder))
        self._environment = {
            **os.environ,
            "CONTAINERS_CONF": str(conf),
            "CONTAINERS_STORAGE_CONF": str(storage),
        }

    def start(self) -> None:
        self._import_image()
        with (self.folder / "engine.log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._podman, "system", "service", "--time=0", f"unix://{self.socket}"],
                env=self._environment,
                stdout=log,
                stderr=log,
            )
        _await_socket(socket.AF_UNIX, self.socket, self._process)

    def _import_image(self) -> None:
        """Make an image out of a folder: busybox, and nothing else."""
        root = self.folder / "rootfs"
        for name in ("bin", "tmp", "etc", "proc", "dev"):
            (root / name).mkdir(parents=True)
        busybox = shutil.which("busybox") or "/bin/busybox"
        shutil.copy(busybox, root / "bin/busybox")
        applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
        for name in applets.stdout.split():
            if name != "busybox":
                (root / "bin" / name).symlink_to("busybox")
        (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nguest:x:1000:1000::/tmp:/bin/sh\n")
        with subprocess.Popen(
            ["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE
        ) as archive:
            self.podman("import", "-", IMAGE, stdin=archive.stdout)

    def podman(self, *argv: str, stdin: object = subprocess.DEVNULL) -> str:
        done = subprocess.run(
            [self._podman, *argv],
            env=self._environment,
            stdin=stdin,  # type: ignore[call-overload]  # a pipe or a constant, as it takes them
            capture_output=True,
            text=True,
            check=False,
            timeout=START_S_MAX,
        )
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def remove_all(self) -> None:
        self.podman("rm", "--all", "--force", "--time=0")

    def stop(self) -> None:
        with suppress(AssertionError):
            self.remove_all()
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_S_MAX)
        self._end_monitors()

    def _end_monitors(self) -> None:
        """End podman's monitors, which otherwise wait five minutes for somebody to ask."""
        needle = f"{self.folder}/".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                program, *arguments = (process / "cmdline").read_bytes().split(b"\0")
                if program.endswith(b"conmon") and any(needle in one for one in arguments):
                    os.kill(int(process.name), 9)


@contextmanager
def container_engine() -> Iterator[ContainerEngine]:
    # The paths of sockets are short, so it is not below pytest's own folders.
    folder = Path(tempfile.mkdtemp(prefix="hostler-engine-"))
    engine = ContainerEngine(folder)
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(folder, ignore_errors=True)


# -- hosts --------------------------------------------------------------------------------------

_SSHD_CONFIG = """
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
AllowTcpForwarding yes
SetEnv HOME={folder}/home
LogLevel VERBOSE
"""


class SshHost:
    """A host: an sshd on a port of loopback, with a key and a home folder of its own."""

    def __init__(self, folder: Path, user_key: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.home = folder / "home"
        self._sshd = need("sshd")
        self._process: subprocess.Popen[bytes] | None = None
        self.home.mkdir(parents=True)
        make_key(folder / "host_key")
        (folder / "authorized_keys").write_text(user_key.with_suffix(".pub").read_text())
        (folder / "sshd_config").write_text(_SSHD_CONFIG.format(port=self.port, folder=folder))

    @property
    def host_key(self) -> str:
        return " ".join((self.folder / "host_key.pub").read_text().split()[:2])

    def start(self) -> None:
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with (self.folder / "sshd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._sshd, "-D", "-e", "-f", str(self.folder / "sshd_config")],
                stdout=log,
                stderr=log,
            )
        _await_socket(socket.AF_INET, ("127.0.0.1", self.port), self._process)

    def stop(self) -> None:
        """Stop listening; connections that there are live on in processes of their own."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_S_MAX)
            self._process = None

    def cut_connections(self) -> None:
        """End every connection, as a break of the network does; the host goes on listening."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for pid in children.read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), 9)


def make_key(path: Path) -> Path:
    need("sshd")
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return path


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _await_socket(
    family: socket.AddressFamily, address: object, process: subprocess.Popen[bytes]
) -> None:
    late_at_s = time.monotonic() + START_S_MAX
    while time.monotonic() < late_at_s:
        assert process.poll() is None, f"{process.args!r} has ended"
        with socket.socket(family) as probe:
            if probe.connect_ex(address) == 0:  # type: ignore[arg-type]  # as the family takes it
                return
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
    raise AssertionError(f"{process.args!r} does not listen")
