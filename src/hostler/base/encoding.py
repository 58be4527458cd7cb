"""The canonical encoding: one value, one string of bytes, under any hash seed.

JSON with sorted keys, so that a store can be read by eye and two processes that hold the same
value compute the same digest.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar

import msgspec

V = TypeVar("V")

_ENCODER = msgspec.json.Encoder(order="sorted")
_ROW_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}


def encode(value: object) -> bytes:
    """Encode a value (structs, enums, builtins) as canonical JSON."""
    return _ENCODER.encode(value)


def encode_row(value: object) -> bytes:
    """Encode what a store keeps: as `encode`, but with fields in the order of their definition.

    That takes a third of the time. The bytes are the same wherever the same code runs; what is to
    be compared with what another version has written must be encoded with `encode`.
    """
    return _ROW_ENCODER.encode(value)


def decode(body: bytes, kind: type[V]) -> V:
    """Decode canonical JSON as `kind`.

    Raises:
        msgspec.ValidationError: The body does not have that shape.
    """
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind)
    return decoder.decode(body)  # type: ignore[no-any-return]  # the cache is keyed by the type


def digest(body: bytes) -> str:
    """Return a 128-bit hexadecimal digest, the same on every machine."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()
