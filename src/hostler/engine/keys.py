"""Keys: the server's one secret, and the credentials that follow from it.

Join tokens of launched machines and credentials of agents are codes over what they are for, made
with a key that lies beside the database, readable by its owner alone. So no secret enters a record
or the journal, and a restart knows every credential again. Tokens of people are random, and records
keep their hash.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Final, Literal, NamedTuple

from hostler.base.errors import Failed, Rejected
from hostler.base.ids import NodeId

KEY_BYTES: Final = 32
"""Length of the key and of a person's token: 256 bits, as many as SHA-256 keeps apart."""

_PREFIXES: Final = {"join": "hj", "agent": "ha"}
"""What a credential begins with, so that one found in a log can be told what it is."""

_Purpose = Literal["join", "agent"]


class NodeCredential(NamedTuple):
    """What a valid credential says."""

    node_id: NodeId
    epoch: int
    """The node's epoch when it was made; authority now is for the caller to compare."""


class Keys:
    """The server's key and what is made with it."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def open(cls, path: Path) -> Keys:
        """Read the key file, or make it.

        Raises:
            Rejected: It is not a key, or others can read it.
            Failed: It cannot be made; the operator has to make room.
        """
        if not path.exists():
            _write_new(path)
        if path.stat().st_mode & 0o077:
            raise Rejected(
                "key_file_open",
                "others can read the server's key: make it mode 0600",
                path=str(path),
            )
        key = path.read_bytes()
        if len(key) != KEY_BYTES:
            raise Rejected(
                "key_file_bad", "this is not a server key: restore it from a backup", path=str(path)
            )
        return cls(key)

    @classmethod
    def ephemeral(cls) -> Keys:
        """Return a key that ends with the process, for a fleet that does so too."""
        return cls(secrets.token_bytes(KEY_BYTES))

    def join_token(self, node_id: str, epoch: int) -> str:
        """Return the token with which the machine launched for a node joins as that node."""
        return self._credential("join", node_id, epoch)

    def agent_credential(self, node_id: str, epoch: int) -> str:
        """Return the credential of a node's agent."""
        return self._credential("agent", node_id, epoch)

    def verify_join_token(self, text: str) -> NodeCredential | None:
        """Return what a join token is for, or `None` if we did not make it."""
        return self._verify("join", text)

    def verify_agent_credential(self, text: str) -> NodeCredential | None:
        """Return whose credential this is, or `None` if we did not make it."""
        return self._verify("agent", text)

    def token_secret(self, principal: str, idempotency_key: str) -> str:
        """Return the secret of the token that a request asks for, the same when it is sent again.

        The answer to the first may have been lost, and secrets are not kept.
        """
        told = f"token\x00{principal}\x00{idempotency_key}".encode()
        mac = hmac.new(self._key, told, hashlib.sha256).digest()
        return f"ht_{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"

    def _credential(self, purpose: _Purpose, node_id: str, epoch: int) -> str:
        return f"{_PREFIXES[purpose]}_{node_id}.{epoch}.{self._code(purpose, node_id, epoch)}"

    def _verify(self, purpose: _Purpose, text: str) -> NodeCredential | None:
        prefix, _, rest = text.partition("_")
        match rest.split("."):
            case [node_id, epoch, code] if prefix == _PREFIXES[purpose] and epoch.isdecimal():
                given, ours = code.encode(), self._code(purpose, node_id, int(epoch)).encode()
                if hmac.compare_digest(given, ours):
                    return NodeCredential(NodeId(node_id), int(epoch))
        return None

    def _code(self, purpose: _Purpose, node_id: str, epoch: int) -> str:
        told = "\x00".join((purpose, node_id, str(epoch))).encode()
        mac = hmac.new(self._key, told, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(mac).decode().rstrip("=")


def _write_new(path: Path) -> None:
    """Write a new key whole, unless another server was quicker.

    Raises:
        Failed: The disk does not take it.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, secrets.token_bytes(KEY_BYTES))
            os.fsync(file)
        finally:
            os.close(file)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    except OSError as error:
        raise Failed(
            "key_file_unwritable",
            f"the server's key cannot be written: {(error.strerror or str(error)).lower()}",
            effect="none",
            path=str(path),
        ) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def new_token_secret() -> str:
    """Return a new secret for a person's token, to be shown once."""
    return f"ht_{secrets.token_urlsafe(KEY_BYTES)}"


def token_hash(secret: str) -> str:
    """Return what a record keeps of a token's secret. It has 256 random bits, so this is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()
