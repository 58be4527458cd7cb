"""Every number that bounds something in the engine, with its reason."""

from __future__ import annotations

from typing import Final

BATCH_COUNT_MAX: Final = 1_000
"""Inputs of one step. At some 50 us each a full batch holds readers up for 50 ms; a larger one
would save nothing, because the fsync is long paid for by then."""

REQUEST_COUNT_MAX: Final = 10_000
"""Requests that may wait for their step; the next one is refused as overloaded. Some seconds of
work: whoever waits longer has given up."""

OBSERVATION_COUNT_MAX: Final = 50_000
"""Observations that may wait; then whoever sees waits too, which stops reading from agents. A
server's start with 10,000 agents brings some 30,000."""

COMMIT_RETRY_MS_MIN: Final = 100
COMMIT_RETRY_MS_MAX: Final = 2_000
"""First and longest pause after a commit that failed. A full disk is noticed by people within
seconds, and work should go on within seconds of their mending it."""

DOUBT_MS_MAX: Final = 60_000
"""How long a commit may stay in doubt before the engine gives up and leaves it to the restart."""

ALARM_MS_MAX: Final = 30_000
"""Longest wait for an alarm in one piece, so that a jump of the wall clock is seen."""

ALARM_REST_MS: Final = 5
"""Pause after an alarm's step that wrote nothing, so that a timer that is due at once again cannot
keep the engine busy."""

PROVIDER_CALL_COUNT_MAX: Final = 64
"""Calls to one provider at once: what a cloud's rate limits bear."""

AGENT_CALL_COUNT_MAX: Final = 256
"""Commands that one agent may be working at: a node drained of 100 replicas needs 100."""

PRUNE_EVERY_MS: Final = 60_000
"""How often events and journal are cut back to the settings."""

FULL_SCAN_EVERY_MS: Final = 3_600_000
"""How often every controller looks at everything. It costs up to some seconds in a large fleet and
must find nothing."""

STOP_MS_MAX: Final = 5_000
"""How long a stop waits for the step under way."""

RECORD_COUNT_LARGE: Final = 10_000
"""From so many records on a load takes the garbage collector out of the way."""

SILENCE_MS_MAX: Final = 3_600_000
"""A launched machine ends itself after so long without the server: longer than an upgrade or a
repair of the server's host, and it bounds what a forgotten machine can cost."""

STEPS_KEPT_MAX = 1_000
"""Steps that are remembered for those who apply what they planned: seconds on a busy fleet,
hours on a quiet one."""

PLANS_KEPT_MAX = 256
"""Plans that are remembered: each is a line a replica."""

BOOT_LOG_BYTES_MAX = 16_384
"""Of what a machine wrote that did not boot, before secrets are taken out and the rest is cut."""

BOOT_LOG_S_MAX = 10
"""How long a stop waits for it."""
