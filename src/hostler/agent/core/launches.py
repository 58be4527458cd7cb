"""Says what is wrong with a launch that no attempt could make right."""

from __future__ import annotations

from typing import Final

from hostler.wire.work import ExecReadiness, HttpReadiness, Launch, TcpReadiness

STOP_SIGNALS: Final = (
    "SIGABRT",
    "SIGALRM",
    "SIGCONT",
    "SIGHUP",
    "SIGINT",
    "SIGKILL",
    "SIGPIPE",
    "SIGQUIT",
    "SIGTERM",
    "SIGUSR1",
    "SIGUSR2",
    "SIGWINCH",
)
"""Signals that may be sent to a job or a leased command."""


def problem_of(launch: Launch) -> str | None:
    """Name the first thing that makes the launch impossible, or `None`."""
    if not launch.argv or not launch.argv[0]:
        return "argv is empty"
    texts = [*launch.argv, *launch.env.keys(), *launch.env.values()]
    if any("\0" in text for text in texts):
        return "argv or env contains a NUL character"
    if any(not name or "=" in name for name in launch.env):
        return "env has a name that is empty or contains '='"
    if launch.stop_signal not in STOP_SIGNALS:
        return f"stop_signal {launch.stop_signal} is not one of {', '.join(STOP_SIGNALS)}"
    if launch.log_file_bytes_max < 1 or launch.log_file_count_max < 1:
        return "log_file_bytes_max and log_file_count_max are at least 1"
    return _readiness_problem(launch)


def _readiness_problem(launch: Launch) -> str | None:
    match launch.readiness:
        case HttpReadiness(port=port) | TcpReadiness(port=port) if not 0 < port < 65536:
            return f"readiness port {port} is not from 1 to 65535"
        case ExecReadiness(argv=[]):
            return "readiness argv is empty"
        case _:
            return None
