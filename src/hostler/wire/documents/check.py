"""Holds a plain value against a document's structs and tells everything that does not fit.

msgspec stops at the first error; people want all of them, and what to change. This walks msgspec's
own description of the types (`msgspec.inspect`), so a new field of a document is checked without a
word here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from msgspec import inspect

from hostler.base.errors import Rejected
from hostler.wire.documents.problem import DocumentProblem
from hostler.wire.documents.text import PARSERS, TEXT_KIND
from hostler.wire.documents.tree import Plain, child_path

_KINDS: Final = {dict: "a mapping", list: "a list", str: "text", bool: "true or false"}

INT_TEXT_LENGTH_MAX: Final = 18
"""Digits of a whole number; records hold 64 bits."""


@cache
def type_info(document: type) -> inspect.Type:
    """Describe a document's type; computed once."""
    return inspect.type_info(document)


class Check:
    """One walk over a value. `problems` fills as it goes.

    Each `fit` returns the value as the type wants it: numbers as text where text is wanted, a
    mapping without its unknown keys. What it returns for a value with problems is not to be used.
    """

    def __init__(self) -> None:
        self.problems: list[DocumentProblem] = []

    def fit(self, value: Plain, wanted: inspect.Type, path: str) -> Plain:
        """Check a value against a type."""
        match wanted:
            case inspect.Metadata():
                return self._fit_metadata(value, wanted, path)
            case inspect.StructType():
                return self._fit_struct(value, wanted, path)
            case inspect.UnionType():
                return self._fit_union(value, wanted, path)
            case inspect.ListType():
                return self._fit_list(value, wanted, path)
            case inspect.DictType():
                return self._fit_dict(value, wanted, path)
            case _:
                return self._fit_scalar(value, wanted, path)

    def tell(self, path: str, code: str, message: str) -> None:
        """Note a problem."""
        self.problems.append(DocumentProblem(path=path, code=code, message=message))

    def _fit_scalar(self, value: Plain, wanted: inspect.Type, path: str) -> Plain:
        match wanted:
            case inspect.LiteralType():
                return self._fit_choice(value, [str(one) for one in wanted.values], path)
            case inspect.StrType():
                return self._fit_text(value, wanted, path)
            case inspect.IntType():
                return self._fit_int(value, wanted, path)
            case inspect.BoolType():
                if isinstance(value, bool):
                    return value
                return self._wrong(value, path, "true or false")
            case _:
                return _unwritten(value)

    def _wrong(self, value: Plain, path: str, wanted: str) -> Plain:
        self.tell(path, "wrong_type", f"expected {wanted}, found {_found(value)}")
        return None

    def _fit_metadata(self, value: Plain, wanted: inspect.Metadata, path: str) -> Plain:
        kind = (wanted.extra or {}).get(TEXT_KIND)
        if kind is None:
            told = (wanted.extra_json_schema or {}).get("description", "")
            if isinstance(wanted.type, inspect.StrType):
                return self._fit_text(value, wanted.type, path, str(told))
            return self.fit(value, wanted.type, path)
        text = _text_of(value)
        if text is None:
            return self._wrong(value, path, f"a {kind}")
        try:
            PARSERS[kind](text)
        except Rejected as error:
            self.tell(path, error.code, f"{error.message}, found {_quoted(text)}")
        return text

    def _fit_struct(self, value: Plain, wanted: inspect.StructType, path: str) -> Plain:
        if not isinstance(value, dict):
            return self._wrong(value, path, "a mapping")
        fields = {field.encode_name: field for field in wanted.fields}
        fitted: dict[str, Plain] = {}
        for name, inner in value.items():
            field = fields.get(name)
            inner_path = child_path(path, name)
            if field is None:
                self.tell(inner_path, "unknown_key", f"unknown key `{name}`{_hint(name, fields)}")
            elif inner is None and not field.required and not _takes_null(field.type):
                self.tell(
                    inner_path, "empty_value", "nothing stands here; give a value or remove the key"
                )
            else:
                fitted[name] = self.fit(inner, field.type, inner_path)
        for name, field in fields.items():
            if field.required and name not in value:
                self.tell(child_path(path, name), "missing_key", f"`{name}` is missing; add it")
        return fitted

    def _fit_union(self, value: Plain, wanted: inspect.UnionType, path: str) -> Plain:
        options = [option for option in wanted.types if not isinstance(option, inspect.NoneType)]
        if value is None and wanted.includes_none:
            return None
        for option in options:
            if _is_kind(value, option):
                return self.fit(value, option, path)
        if len(options) == 1:
            return self.fit(value, options[0], path)
        return self._wrong(value, path, " or ".join(_kind_name(option) for option in options))

    def _fit_list(self, value: Plain, wanted: inspect.ListType, path: str) -> Plain:
        if not isinstance(value, list):
            return self._wrong(value, path, "a list")
        if wanted.min_length and len(value) < wanted.min_length:
            self.tell(path, "too_short", "the list is empty; it needs at least one entry")
        return [
            self.fit(item, wanted.item_type, child_path(path, index))
            for index, item in enumerate(value)
        ]

    def _fit_dict(self, value: Plain, wanted: inspect.DictType, path: str) -> Plain:
        if not isinstance(value, dict):
            return self._wrong(value, path, "a mapping")
        fitted: dict[str, Plain] = {}
        for name, inner in value.items():
            inner_path = child_path(path, name)
            self.fit(name, wanted.key_type, inner_path)
            fitted[name] = self.fit(inner, wanted.value_type, inner_path)
        return fitted

    def _fit_choice(self, value: Plain, options: list[str], path: str) -> Plain:
        if value in options:
            return value
        told = ", ".join(options[:-1]) + f" or {options[-1]}"
        close = _closest(value, options) if isinstance(value, str) else None
        hint = f"; did you mean `{close}`?" if close else ""
        self.tell(path, "unknown_choice", f"expected {told}, found {_found(value)}{hint}")
        return None

    def _fit_text(
        self, value: Plain, wanted: inspect.StrType, path: str, described: str = ""
    ) -> Plain:
        text = _text_of(value)
        if text is None:
            hint = "; put it in quotes if it is meant as text" if isinstance(value, bool) else ""
            self.tell(path, "wrong_type", f"expected text, found {_found(value)}{hint}")
        elif "\0" in text:
            self.tell(path, "bad_text", "a NUL character cannot stand here; remove it")
        elif wanted.pattern and not re.search(wanted.pattern, text):
            allowed = _as_clause(described) or f"what fits `{wanted.pattern}`"
            self.tell(path, "bad_text", f"{_quoted(text)} cannot stand here; allowed: {allowed}")
        return text

    def _fit_int(self, value: Plain, wanted: inspect.IntType, path: str) -> Plain:
        if not isinstance(value, int) or isinstance(value, bool):
            return self._wrong(value, path, "a whole number")
        if wanted.ge is not None and value < wanted.ge:
            self.tell(path, "too_small", f"expected {wanted.ge} or more, found {int(value)}")
        elif wanted.le is not None and value > wanted.le:
            self.tell(path, "too_large", f"expected {wanted.le} or less, found {int(value)}")
        elif abs(value) >= 10**INT_TEXT_LENGTH_MAX:
            self.tell(path, "too_large", f"expected {INT_TEXT_LENGTH_MAX} digits at most")
        return int(value)


def _found(value: Plain) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return f"text {_quoted(value)}"
        case int() | float():
            return _text_of(value) or str(value)
        case _:
            return _KINDS[type(value)]


def _as_clause(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def _quoted(text: str) -> str:
    return f'"{text}"' if len(text) <= 60 else f'"{text[:57]}..."'


def _text_of(value: Plain) -> str | None:
    """Return text, or a number as it was written."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return str(getattr(value, "text", value))


def _unwritten(value: Plain) -> Plain:
    """Return plain numbers for those that remember their text."""
    match value:
        case dict():
            return {name: _unwritten(inner) for name, inner in value.items()}
        case list():
            return [_unwritten(item) for item in value]
        case bool() | None:
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case _:
            return value


def _takes_null(wanted: inspect.Type) -> bool:
    match wanted:
        case inspect.UnionType():
            return wanted.includes_none
        case inspect.Metadata():
            return _takes_null(wanted.type)
        case _:
            return isinstance(wanted, inspect.AnyType)


def _is_kind(value: Plain, wanted: inspect.Type) -> bool:
    match wanted:
        case inspect.Metadata():
            return (wanted.extra or {}).get(TEXT_KIND) is None and _is_kind(value, wanted.type)
        case inspect.StructType() | inspect.DictType():
            return isinstance(value, dict)
        case inspect.ListType():
            return isinstance(value, list)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case inspect.StrType() | inspect.LiteralType():
            return isinstance(value, str)
        case _:
            return False


def _kind_name(wanted: inspect.Type) -> str:
    match wanted:
        case inspect.Metadata():
            return _kind_name(wanted.type)
        case inspect.StructType() | inspect.DictType():
            return "a mapping"
        case inspect.ListType():
            return "a list"
        case inspect.IntType():
            return "a whole number"
        case _:
            return "text"


def _closest(name: str, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.6)), None)


def _hint(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = _closest(name, names)
    if close:
        return f"; did you mean `{close}`?"
    return f"; known here: {', '.join(names)}" if len(names) <= 20 else ""
