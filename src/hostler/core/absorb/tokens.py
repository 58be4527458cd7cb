"""Being written."""

from __future__ import annotations

from typing import Any

from hostler.core.txn import Txn


def create(txn: Txn, one: Any) -> None:
    """Being written."""


def revoke(txn: Txn, one: Any) -> None:
    """Being written."""
