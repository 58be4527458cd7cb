"""The two documents that people write: `hostler.yaml` and bundles.

Durations, sizes, money and cores are text here, checked and as written. What a document means for
records is `engine/translate.py`'s business.
"""

from hostler.wire.documents.bundle import (
    BundleDocument,
    JobConfigDocument,
    JobDocument,
    ReadinessDocument,
)
from hostler.wire.documents.config import ConfigDocument, PoolDocument, TierDocument
from hostler.wire.documents.maintenance import MaintenanceDocument
from hostler.wire.documents.problem import DocumentProblem, DocumentRejected
from hostler.wire.documents.reader import (
    Reading,
    check_value,
    read_bundles,
    read_config,
    read_job_config,
    read_maintenance,
    require_all,
)
from hostler.wire.documents.schema import bundle_schema, config_schema
from hostler.wire.documents.where import (
    DomainDocument,
    NodeLabelDocument,
    PeersDocument,
    SpreadDocument,
    WhereDocument,
)
from hostler.wire.documents.work import (
    AttributeDocument,
    CapabilityDocument,
    WishDocument,
    capability_of,
    wish_of,
)

__all__ = [
    "AttributeDocument",
    "BundleDocument",
    "CapabilityDocument",
    "ConfigDocument",
    "DocumentProblem",
    "DocumentRejected",
    "DomainDocument",
    "JobConfigDocument",
    "JobDocument",
    "MaintenanceDocument",
    "NodeLabelDocument",
    "PeersDocument",
    "PoolDocument",
    "ReadinessDocument",
    "Reading",
    "SpreadDocument",
    "TierDocument",
    "WhereDocument",
    "WishDocument",
    "bundle_schema",
    "capability_of",
    "check_value",
    "config_schema",
    "read_bundles",
    "read_config",
    "read_job_config",
    "read_maintenance",
    "require_all",
    "wish_of",
]
