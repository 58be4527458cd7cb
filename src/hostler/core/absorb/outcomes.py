"""Being written."""

from __future__ import annotations

from typing import Any

from hostler.core.txn import Txn


def settled(txn: Txn, one: Any) -> None:
    """Being written."""
