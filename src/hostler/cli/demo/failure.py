"""What the demo says when something did not hold."""

from __future__ import annotations


class DemoFailed(Exception):
    """Something that the demo shows did not hold; the message says what, in one sentence."""
