"""Retirement: being written."""

from __future__ import annotations

from typing import Final

from hostler.core.txn import Txn
from hostler.model import Node

READS: Final = (Node,)


def reconcile(txn: Txn) -> None:
    """Being written."""
