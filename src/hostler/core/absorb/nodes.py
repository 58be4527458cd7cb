"""Being written."""

from __future__ import annotations

from typing import Any

from hostler.core.txn import Txn


def cordon(txn: Txn, one: Any) -> None:
    """Being written."""


def uncordon(txn: Txn, one: Any) -> None:
    """Being written."""


def drain(txn: Txn, one: Any) -> None:
    """Being written."""
