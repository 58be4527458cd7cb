"""Secrets in what machines write: taken out before a text is kept or shown.

A word that follows the name of a secret, a user's part of an address, a private key, and tokens of
well-known shape. It errs on the side of taking out too much: what is left is for finding a fault.
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "[redacted]"

_NAMED: Final = re.compile(
    r"""(?ix)
    ( (?P<flag> -- )? [\w.-]*
      (?: passw(?:or)?d | passphrase | secret | token | credentials? | authorization
        | (?: api | access | private ) [_-]? key ) [\w.-]* ["']?
      (?: \s* [=:] \s* | (?(flag) \s+ | (?!) ) )
      (?: (?: bearer | basic ) \s+ )? )
    ( "[^"\n]*" | '[^'\n]*' | [^\s,;&"']+ )
    """
)
_IN_ADDRESS: Final = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^\s/@]+@")
_KEY_BLOCK: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_SHAPED: Final = re.compile(
    r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|xox[abprs]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)


def redacted(text: str) -> str:
    """Return a text without what looks like a secret."""
    text = _KEY_BLOCK.sub(MASK, text)
    text = _IN_ADDRESS.sub(rf"\1{MASK}@", text)
    text = _SHAPED.sub(MASK, text)
    return _NAMED.sub(rf"\1{MASK}", text)


def tail_of(text: str, chars_max: int) -> str:
    """Return the end of a text without secrets. A line that is cut off is left out."""
    clean = redacted(text).strip()
    if len(clean) <= chars_max:
        return clean
    kept = clean[-chars_max:]
    return kept.partition("\n")[2] or kept
