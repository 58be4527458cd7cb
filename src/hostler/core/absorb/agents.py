"""Being written."""

from __future__ import annotations

from typing import Any

from hostler.core.txn import Txn


def join(txn: Txn, one: Any) -> None:
    """Being written."""


def hello(txn: Txn, one: Any) -> None:
    """Being written."""


def inventory(txn: Txn, one: Any) -> None:
    """Being written."""


def allocation(txn: Txn, one: Any) -> None:
    """Being written."""


def silence(txn: Txn, one: Any) -> None:
    """Being written."""


def contact(txn: Txn, one: Any) -> None:
    """Being written."""
