"""Being written."""

from __future__ import annotations

from typing import Any

from hostler.core.txn import Txn


def submit(txn: Txn, one: Any) -> None:
    """Being written."""


def delete(txn: Txn, one: Any) -> None:
    """Being written."""


def start_job(txn: Txn, one: Any) -> None:
    """Being written."""
