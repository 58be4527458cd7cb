"""Being written."""

from __future__ import annotations

from typing import Any

from hostler.core.txn import Txn


def apply_configuration(txn: Txn, one: Any) -> None:
    """Being written."""


def server_started(txn: Txn, one: Any) -> None:
    """Being written."""
