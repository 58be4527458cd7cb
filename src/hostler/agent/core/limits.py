"""Bounds of the agent, each with its reason."""

from __future__ import annotations

from typing import Final

WELCOME_WITHIN_MS: Final = 10_000
"""A server that says nothing for so long after a hello is not going to."""

HEARTBEATS_UNANSWERED_MAX: Final = 3
"""A connection on which so many heartbeats stayed unanswered is dead, whatever TCP believes."""

SUPERVISOR_START_WITHIN_MS: Final = 30_000
"""A supervisor takes some 20 ms to start; so much more is a machine that swaps or worse."""

KILL_WITHIN_MS: Final = 5_000
"""From telling a supervisor to kill until killing the supervisor itself."""

PROBE_SLACK_MS: Final = 2_000
"""Over a probe's own timeout, until its answer is taken for lost and counted as a failure."""

PROBE_FAILURES_MAX: Final = 3
"""Failures in a row that make a ready job unready; one lost packet is not an illness."""

EXECS_MAX: Final = 256
"""Leased commands at once; each holds three pipes and a process."""

LOG_STREAMS_MAX: Final = 64
"""Log readers at once; each may hold a window of data."""

TOMBSTONES_MAX: Final = 4_096
"""Ended allocations and leases that are remembered by id and epoch only, so that a start that
comes late is refused."""

CHECKS_MAX: Final = 4
"""Tries of ready checks at once: a server asks for one at a time, and an old one may still end."""

CHECK_TAIL_BYTES: Final = 2_000
"""How much of what a check writes is told: an error with what led to it."""
