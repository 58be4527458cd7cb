"""JSON Schemas of the documents, for editors and for those who generate them."""

from __future__ import annotations

from typing import Any

import msgspec

from hostler.wire.documents.bundle import BundleDocument
from hostler.wire.documents.config import ConfigDocument

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema of `hostler.yaml`."""
    return _schema(ConfigDocument, "hostler.yaml")


def bundle_schema() -> dict[str, Any]:
    """Return the JSON Schema of a bundle."""
    return _schema(BundleDocument, "A bundle of Hostler")


def _schema(document: type, title: str) -> dict[str, Any]:
    schema: dict[str, Any] = msgspec.json.schema(document)
    return {"$schema": _DIALECT, "title": title, **schema}
