"""Receipts: a request with an idempotency key is done once, and answered alike for a day.

A refusal leaves no receipt: nothing was changed, so the request may be mended and sent again.
"""

from __future__ import annotations

import msgspec

from hostler.base.encoding import digest, encode
from hostler.core.asking import Request
from hostler.core.limits import RECEIPT_MS
from hostler.core.replies import Accepted
from hostler.core.txn import Txn
from hostler.model import Receipt


def answer(txn: Txn, one: Request) -> bool:
    """Answer a request that was done before; say whether it was."""
    receipt = txn.fleet.receipts.get(_receipt_id(one))
    if receipt is None or receipt.expires_at_ms <= txn.now_ms:
        return False
    if receipt.request_digest == _digest(one):
        txn.accept(one.request_id, receipt.subject_id, is_repeat=True)
    else:
        txn.refuse(
            one.request_id,
            "idempotency_key_reused",
            "this idempotency key was used for another request; use a new one",
            is_conflict=True,
        )
    return True


def keep(txn: Txn, one: Request) -> None:
    """Remember what a request was answered, if it was accepted."""
    match txn.answer_to(one.request_id):
        case Accepted(subject_id=subject_id):
            txn.put(
                Receipt(
                    receipt_id=_receipt_id(one),
                    request_digest=_digest(one),
                    subject_id=subject_id,
                    expires_at_ms=txn.now_ms + RECEIPT_MS,
                )
            )
        case _:
            pass


def _receipt_id(one: Request) -> str:
    kind = type(one).__struct_config__.tag
    return f"{kind}:{one.principal}:{one.idempotency_key}"


def _digest(one: Request) -> str:
    return digest(encode(msgspec.structs.replace(one, request_id="", origin=None)))
