"""Holds one job: its processes, its output, its readiness and its end. One per allocation.

Run as `python -I -S -E supervisor.py FOLDER` in a session of its own. The agent may die and come
back. A node may run a hundred of these, so it uses little of the standard library (`_signal` and
`_socket`, not their wrappers) and nothing else. All it has to do with the agent is files in FOLDER:

- `launch`: what to run, NUL-separated `key=value`; read once.
- `command`: `stop SIGNAL GRACE_MS`; the agent writes it and then sends SIGURG, which is ignored by
  default and so cannot hurt a supervisor that is still starting.
- `state`: what has become of it, `key=value` lines; replaced at each change, and a datagram with
  the folder's name goes to the agent's socket.
- `log`, `log.1`, ...: output, newest first. `notify`: the socket for `sd_notify`.
- `lock`: held while it lives, and tells its pid. A second supervisor for the folder ends at once,
  and so does one that finds a state: a folder is started once.

No process outlives the job's main process: its group is killed, and as every orphan below becomes
our child, so is whatever left the group. If the supervisor itself is killed, the kernel kills the
main process; the agent finds the others by their environment.

A job that must not run without authority is stopped when the instant is past that the `authority`
file names; the agent renews the file, and need not be alive for the stop.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # typeshed knows only the wrapper
import _socket as socket
import ctypes
import fcntl
import os
import select
import sys
import time

PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 15, 36

NOTICES = {"STATUS": "status", "X_HOSTLER_CONFIG": "config_applied"}
READ_BYTES = 65_536
# What the job writes and says is read in turns, so that a flood of it does not delay a stop.
READS_MAX = 16
# A sockaddr_un holds 108 bytes with the closing NUL.
SOCKET_PATH_BYTES_MAX = 107
REAP_POLL_MS = 20  # between two looks at what was killed and is not gone yet
STATE_RETRY_MS = 1_000  # until a state that could not be written (full disk) is tried again

LIBC = ctypes.CDLL(None)


def boot_ms() -> int:
    """Milliseconds since boot, time asleep included; the same for every process."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def stat(pid: int | str) -> list[bytes]:
    """Fields of a process from its state on; 1 is its parent, 19 its start in ticks since boot."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


class Launch:
    """What the agent wrote into `launch`."""

    def __init__(self, data: bytes) -> None:
        pairs = [entry.partition(b"=")[::2] for entry in data.split(b"\0")]
        self.argv = [value for key, value in pairs if key == b"argv"]
        env = [value.partition(b"=") for key, value in pairs if key == b"env"]
        self.env = {name: value for name, _, value in env}
        once = dict(pairs)
        self.folder = once[b"folder"]
        self.cwd = once[b"cwd"]
        self.stop_signal = int(once[b"stop_signal"])
        self.stop_grace_ms = int(once[b"stop_grace_ms"])
        self.log_file_bytes_max = int(once[b"log_file_bytes_max"])
        self.log_file_count_max = int(once[b"log_file_count_max"])
        self.agent_socket = once[b"agent_socket"]
        self.authority = once.get(b"authority")


class Log:
    """`log` and its predecessors. A full disk costs output, not the job."""

    def __init__(self, file_bytes_max: int, file_count_max: int) -> None:
        self.file_bytes_max = file_bytes_max
        self.file_count_max = file_count_max
        self.fd = -1
        self.size_bytes = 0

    def write(self, data: bytes) -> None:
        """Append, rotating as often as needed."""
        try:
            while data:
                if self.fd < 0 or self.size_bytes >= self.file_bytes_max:
                    self.rotate()
                room_bytes = self.file_bytes_max - self.size_bytes
                written_bytes = os.write(self.fd, data[:room_bytes])
                self.size_bytes += written_bytes
                data = data[written_bytes:]
        except OSError:
            return

    def rotate(self) -> None:
        """Move every file one on, the oldest out, and begin a new one."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1
        names = ["log", *(f"log.{index}" for index in range(1, self.file_count_max))]
        if os.path.exists("log"):
            if os.path.exists(names[-1]):
                os.unlink(names[-1])
            for index in range(len(names) - 1, 0, -1):
                if os.path.exists(names[index - 1]):
                    os.replace(names[index - 1], names[index])
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self.fd = os.open("log", flags, 0o640)
        self.size_bytes = 0


class Supervisor:
    """One job from its start to its end."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.log = Log(launch.log_file_bytes_max, launch.log_file_count_max)
        self.state: dict[str, object] = {
            "supervisor_pid": os.getpid(),
            "supervisor_start_ticks": int(stat(os.getpid())[19]),
        }
        self.is_state_written = True
        self.pid = 0
        self.exit_code: int | None = None
        self.kill_at_ms: int | None = None
        self.authority_until_ms = 0
        self.wakeup, wakeup_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup_end)
        for number in (signal.SIGCHLD, signal.SIGURG, signal.SIGTERM):
            signal.signal(number, lambda _number, _frame: None)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        self.notify = socket.socket(socket.AF_UNIX, kind)
        self.notify.bind("notify")
        self.teller = socket.socket(socket.AF_UNIX, kind)

    def tell(self, **changes: object) -> None:
        """Write the changed state, and say so to whoever listens."""
        self.state.update(changes)
        text = "".join(f"{key}={value}\n" for key, value in self.state.items())
        try:
            # Replaced as a whole, so that a reader sees the old state or the new one.
            with open("state.new", "w", encoding="utf-8") as file:
                file.write(text)
            os.replace("state.new", "state")
            self.is_state_written = True
        except OSError:
            self.is_state_written = False
        try:
            self.teller.sendto(os.path.basename(self.launch.folder), self.launch.agent_socket)
        except OSError:
            # Nobody listens, or too slowly: whoever comes reads the file.
            return

    def start(self) -> bool:
        """Start the main process; say whether that worked."""
        self.tell()
        self.output, output_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.output, False)
        failure, failure_end = os.pipe2(os.O_CLOEXEC)
        self.pid = os.fork()
        if self.pid == 0:
            self.become_job(output_end, failure_end)
        os.close(output_end)
        os.close(failure_end)
        error = os.read(failure, 4_096)
        os.close(failure)
        if error:
            os.waitpid(self.pid, 0)
            self.tell(start_error=error.decode(errors="replace"), ended_at_ms=now_ms())
            return False
        ticks = int(stat(self.pid)[19])
        self.tell(pid=self.pid, pid_start_ticks=ticks, started_at_ms=now_ms())
        return True

    def become_job(self, output: int, failure: int) -> None:
        """In the child: turn into the job, or say why not. Never returns."""
        what = "prepare"
        try:
            os.setsid()
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            parent = self.state["supervisor_pid"]
            if os.getppid() != parent:
                os._exit(127)
            signal.set_wakeup_fd(-1)
            for number in range(1, signal.NSIG):
                if signal.getsignal(number) not in (None, signal.SIG_DFL):
                    signal.signal(number, signal.SIG_DFL)
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            what = "enter the working folder"
            os.chdir(self.launch.cwd)
            what = "run " + os.fsdecode(self.launch.argv[0])
            notify = self.launch.folder + b"/notify"
            if len(notify) > SOCKET_PATH_BYTES_MAX:
                notify = f"/proc/{parent}/cwd/notify".encode()
            env = self.launch.env | {b"NOTIFY_SOCKET": notify}
            os.execvpe(self.launch.argv[0], self.launch.argv, env)
        except OSError as error:
            os.write(failure, f"cannot {what}: {os.strerror(error.errno or 0)}".encode()[:4_096])
        finally:
            os._exit(127)

    def run(self) -> None:
        """Serve the job until its main process has ended and nothing of it is left."""
        poll = select.poll()
        for fd in (self.wakeup, self.output, self.notify.fileno()):
            poll.register(fd, select.POLLIN)
        self.obey()
        while self.exit_code is None:
            ready = {fd for fd, _ in poll.poll(self.patience_ms())}
            if self.wakeup in ready:
                if signal.SIGTERM in os.read(self.wakeup, 512):
                    # Everything on this machine is being stopped.
                    self.stop(self.launch.stop_signal, self.launch.stop_grace_ms)
                self.obey()
            if self.notify.fileno() in ready:
                self.take_notices()
            if self.output in ready and not self.copy_output():
                poll.unregister(self.output)
            self.reap()
            self.keep_deadlines()
        self.kill_everything()
        self.copy_output()
        self.tell_end(self.exit_code)

    def patience_ms(self) -> int | None:
        """How long nothing needs to be done."""
        instants_ms = []
        if self.kill_at_ms is not None:
            instants_ms.append(self.kill_at_ms)
        elif self.launch.authority is not None:
            instants_ms.append(self.authority_until_ms)
        if not self.is_state_written:
            instants_ms.append(boot_ms() + STATE_RETRY_MS)
        return max(0, min(instants_ms) - boot_ms()) if instants_ms else None

    def keep_deadlines(self) -> None:
        """Kill what had its grace, stop what has no authority, write what could not be written."""
        if self.kill_at_ms is not None and boot_ms() >= self.kill_at_ms:
            send(-self.pid, signal.SIGKILL)
            self.kill_at_ms = boot_ms() + STATE_RETRY_MS
        elif self.kill_at_ms is None and self.launch.authority is not None:
            if boot_ms() >= self.authority_until_ms:
                self.authority_until_ms = read_number(self.launch.authority)
            if boot_ms() >= self.authority_until_ms:
                self.state["is_fenced"] = 1
                self.stop(self.launch.stop_signal, self.launch.stop_grace_ms)
        if not self.is_state_written:
            self.tell()

    def obey(self) -> None:
        """Do what `command` says; saying it again changes nothing."""
        try:
            with open("command", "rb") as file:
                words = file.read().split()
        except FileNotFoundError:
            return
        self.stop(int(words[1]), int(words[2]))

    def stop(self, number: int, grace_ms: int) -> None:
        """Begin to stop; while stopping, only a shorter patience changes anything."""
        kill_at_ms = boot_ms() + grace_ms
        if self.kill_at_ms is not None:
            self.kill_at_ms = min(self.kill_at_ms, kill_at_ms)
            return
        self.kill_at_ms = kill_at_ms
        send(-self.pid, number)
        # A job that is paused could not hear the signal.
        send(-self.pid, signal.SIGCONT)
        self.tell(is_stopping=1)

    def take_notices(self) -> None:
        """Read what the job says by `sd_notify`."""
        for _ in range(READS_MAX):
            try:
                notice = self.notify.recv(4_096)
            except BlockingIOError:
                return
            for line in notice.decode(errors="replace").split("\n"):
                key, _, value = line.partition("=")
                if key in {"READY", "STOPPING"} and value == "1":
                    self.tell(is_ready=int(key == "READY"))
                elif key in NOTICES:
                    self.tell(**{NOTICES[key]: " ".join(value.split())})

    def copy_output(self) -> bool:
        """Copy what the job wrote into the log; false when no more can come."""
        for _ in range(READS_MAX):
            try:
                data = os.read(self.output, READ_BYTES)
            except BlockingIOError:
                break
            if not data:
                return False
            self.log.write(data)
        return True

    def reap(self) -> None:
        """Collect children that have ended: orphans at once, the main process with its group."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            if found.si_pid == self.pid:
                # While it is not collected nobody else can have its number.
                send(-self.pid, signal.SIGKILL)
                self.exit_code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
                return
            os.waitpid(found.si_pid, 0)

    def kill_everything(self) -> None:
        """Kill all that is left below us; each death hands us the orphans of the dead."""
        while True:
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            for pid in children():
                send(pid, signal.SIGKILL)
            select.poll().poll(REAP_POLL_MS)
            self.copy_output()

    def tell_end(self, code: int) -> None:
        """Write the end down, however long a full disk makes us wait."""
        end = {"signal": -code} if code < 0 else {"exit_code": code}
        self.tell(is_ready=0, ended_at_ms=now_ms(), **end)
        while not self.is_state_written:
            select.poll().poll(STATE_RETRY_MS)
            self.tell()


def read_number(path: bytes) -> int:
    """The number that the file begins with; 0 when there is none."""
    try:
        with open(path, "rb") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def children() -> list[int]:
    """Our direct children, also those that have ended and are not collected."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and int(stat(name)[1]) == os.getpid():
                found.append(int(name))
        except OSError:
            continue
    return found


def send(pid: int, number: int) -> None:
    """Signal a process, or with `-pid` a group, if it is there and ours to signal."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def main(folder: str) -> int:
    """Supervise the folder's job, unless somebody does or did."""
    os.chdir(folder)
    lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 0
    if os.path.exists("state"):
        return 0
    LIBC.prctl(PR_SET_NAME, b"hostler-job", 0, 0, 0)
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with open("launch", "rb") as file:
        launch = Launch(file.read())
    supervisor = Supervisor(launch)
    if supervisor.start():
        supervisor.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
