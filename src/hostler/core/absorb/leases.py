"""Being written."""

from __future__ import annotations

from typing import Any

from hostler.core.txn import Txn


def acquire(txn: Txn, one: Any) -> None:
    """Being written."""


def heartbeat(txn: Txn, one: Any) -> None:
    """Being written."""


def release(txn: Txn, one: Any) -> None:
    """Being written."""
