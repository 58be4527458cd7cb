"""The instants between which a crash makes a difference, by name.

The engine announces each as it passes; a test stops the process there, starts another one and
demands the same end. A boundary that no crash test has a case for fails `tests/engine`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Boundary(StrEnum):
    """Where the engine may be when the power goes."""

    AFTER_CLAIM_BEFORE_LOAD = "after_claim_before_load"
    DURING_LOAD = "during_load"
    """The store is read, the fleet is not built."""
    AFTER_LOAD_BEFORE_START = "after_load_before_start"
    """The fleet is there, and nobody has been told that the server started."""
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT_BEFORE_KEEP = "after_commit_before_keep"
    AFTER_KEEP_BEFORE_REPLY = "after_keep_before_reply"
    AFTER_REPLY_BEFORE_PUBLISH = "after_reply_before_publish"
    AFTER_PUBLISH_BEFORE_DISPATCH = "after_publish_before_dispatch"
    AFTER_DISPATCH_BEFORE_CALL = "after_dispatch_before_call"
    """The command is on its way and has not reached the provider or the agent."""
    AFTER_CALL_BEFORE_SETTLE = "after_call_before_settle"
    """Its effect is there, and the engine has not been told."""
    BEFORE_PRUNE = "before_prune"


BoundaryHook = Callable[[Boundary], None]


def pass_by(boundary: Boundary) -> None:
    """Do nothing: what happens at a boundary outside of tests."""
