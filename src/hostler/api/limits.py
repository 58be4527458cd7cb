"""Every number that bounds something in the API, with its reason."""

from __future__ import annotations

from typing import Final

BODY_BYTES_MAX: Final = 4 * 2**20
"""Largest body of a request. A bundle of 50 jobs is about 40 kB."""

BODY_MS_MAX: Final = 30_000
"""How long a body may take to come in; who sends a byte a second holds a connection for nothing."""

PAGE_COUNT_DEFAULT: Final = 100
PAGE_COUNT_MAX: Final = 1_000
"""Records of one page: some 600 kB of nodes, some 10 ms of work."""

IDEMPOTENCY_KEY_LENGTH_MAX: Final = 255
"""As long as a UUID and a name, and as others take."""

RETRY_AFTER_MS: Final = 1_000
"""What a client is told to wait where nobody knows better."""

EVENTS_TAIL_MAX: Final = 10_000
"""Past events that a stream may begin with without naming a position."""

EVENTS_KEEPALIVE_MS: Final = 15_000
"""A stream without events says that it lives; proxies commonly cut after 30 s of nothing."""

LINK_OPENING_MS_MAX: Final = 10_000
"""How long a new link may take until its hello."""

LINK_AWAIT_MS: int = 3_000
"""How long a log or a command waits for a node whose link is down: a server's restart or a break of
the network is over in less, and people do not mind."""

LINK_SESSION_KEPT_MS: Final = 120_000
"""How long a session without a link can be resumed. By then its node is lost, or will say anew
what it has; meanwhile its streams and commands wait."""

LINK_WATCH_EVERY_MS: Final = 500
"""How often agents are looked at for silence: small beside any interval of heartbeats."""

HEARTBEAT_MS_UNCONFIGURED: Final = 5_000
"""Heartbeats before the first configuration: what `hostler.yaml` has by default."""

FENCE_AFTER_MS_UNCONFIGURED: Final = 35_000
"""As above."""

SILENT_AFTER_HEARTBEATS: Final = 2
"""One heartbeat may be late or lost; at two something is wrong."""

STREAM_QUEUE_COUNT_MAX: Final = 4_096
"""Messages of one stream that wait for its reader. The window bounds their bytes; this bounds what
a peer could do with empty ones."""

SHUTDOWN_MS_MAX: Final = 3_000
"""How long a stopping server waits for answers under way; streams are ended at once."""

MACHINE_CALL_MS_MAX: Final = 30_000
"""How long a provider may take over one call into a machine: an engine that pulls itself together
or a host behind a slow link answers in less, and nobody is held up but the machine's own node."""

MACHINE_RETRY_MS_MIN: Final = 250
MACHINE_RETRY_MS_MAX: Final = 10_000
"""First and longest pause after a call into a machine that failed."""

MACHINE_PROBE_EVERY_MS: int = 10_000
"""How often a deputy looks at its machine: a thousand machines are a hundred looks a second."""

MACHINE_DOUBT_MS: int = 1_000
"""How soon a machine is looked at again after a look that failed."""

MACHINE_PROBE_FAILURES_MAX: Final = 2
"""Looks that fail in a row until the machine's node is not heard any more: one lost packet is not
an illness."""

COLLECT_EVERY_COUNT: Final = 10_000
"""New objects until the garbage collector looks at them: Python's own 700 are made by a few
requests, and a twentieth of the time went there. Records have no cycles, and little else has."""
