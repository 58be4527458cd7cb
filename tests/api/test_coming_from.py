"""`docs/coming-from.md`, placement: nothing of the other system is missing, names here exist."""

from __future__ import annotations

import importlib
import re
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import hostler.client
import hostler.wire.documents
import hostler.wire.documents.bundle
import hostler.wire.documents.work
import hostler.wire.http
from hostler.api.app import create_openapi
from hostler.api.metrics.table import METRICS
from hostler.core.events import EventKind
from hostler.model import command
from hostler.model.reason import Reason
from hostler.wire.documents import ConfigDocument
from tests.tidy.sources import ROOT

ROOMS = (
    hostler.client,
    hostler.wire.http,
    hostler.wire.documents,
    hostler.wire.documents.bundle,
    hostler.wire.documents.work,
    command,
)

_THERE = """
url signal clock pendingWindow removeStoppedNodesAfter placementPools
placement.rejectionBackoffMs placement.rejectionEscalationCount placement.failureBackoffMs
placement.jobStartupGraceMs bands.<band>.maxRestartsPerHour hotSpares
hotSpareReconcileIntervalMs nodeServices nodeServiceReconcileIntervalMs
migration.launchingDeadlineMs migration.awaitingTargetReadyDeadlineMs
migration.awaitingSourceStopDeadlineMs migration.applyingDeadlineMs connect close createBundle
updateBundle deleteBundle startBundleJob stopBundleJob startJob stopJob createJob deleteJob
createAwsNode createOciNode terminateNode markJobFailed migrateJob abortMigration
notifyMigrationCutoverReady notifyMigrationCutoverApply jobUpdated jobPending jobDeleted
jobOutOfWindow jobInfo nodeStarting nodeStarted nodeStopping nodeStopped physicalNodeConnected
providerHealthChange eventStreamClosed nodeInventoryUpdated jobRejected jobConfigUpdated
bundleUpdated bundleDeleted nodeServiceUpdated nodeServiceDeleted migrationTargetReady
migrationSourceStoppedOutput migrationAborted auditAppended onConnectionStateChange onError
onJobUpdated onJobDeleted onJobInfo onJobConfigUpdated onJobRejected onJobDropped onNodeStarting
onNodeStarted onNodeStopping onNodeStopped onNodeTerminated onNodeUnhealthy onBundleUpdated
onBundleDeleted onBundleBroken onPlacementDecision onPlacementFailed onResilienceDegraded
onSpareUnderflow onMigrationPhase onMigrationCompleted onMigrationAborted onAuditAppended
run(settings) close() dispose() setBundleStopTime bundleStopTimes pendingPlacements jobs nodes
bundles bundleById jobsForBundle nodeForJob placements placementForJob inventory inventories
metrics placeDryRun validateBundle validateBundleAdmission isBundleBroken cordonNode
uncordonNode isCordoned drainNode migrations migrationById migrationForJob isHotSpareNode
spareBandForNode nodeServicePlacementsFor getJobIdForNode currentNodeIdForJob
placementsAttempted placementsSucceeded placementsFailed placementsDispatchFailed jobsRejected
bundlesBroken jobsDropped poolName nodeCount liveSpares spareTarget usedCapacityFraction
startedAt uptimeMs brokenBundleIds
"""
THERE = tuple(_THERE.split())
"""Every setting, request, event, callback, method and number of the reference system:
spec/placement.md 1.2, 1.17 and section 2."""


def rows() -> Iterator[list[str]]:
    """The cells of every row of the tables of the chapter."""
    text = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    (chapter,) = re.findall(r"^## Placement\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    for line in chapter.splitlines():
        if line.startswith("|") and not line.startswith(("| there", "| ---")):
            yield line.split("|")[1:-1]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


NAMES = sorted({name for row in rows() for name in names(row[1])})


def test_nothing_of_the_other_system_is_missing() -> None:
    told = {name for row in rows() for name in names(row[0])}
    assert [name for name in THERE if name not in told] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_ours_exists(name: str) -> None:
    assert exists(name)


@pytest.mark.parametrize(
    "name",
    ["pools.nowhere", "Client.nowhere", "node_nowhere", "hostler nowhere", "GET /v1/nowhere"],
)
def test_a_name_that_is_not_there_is_found_out(name: str) -> None:
    assert not exists(name)


def exists(name: str) -> bool:
    """Say whether a name of ours is there."""
    method, _, path = name.partition(" ")
    if name.startswith("hostler "):
        return f"## `{name}" in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") or (
            name in ("hostler get upcoming", "hostler get stuck", "hostler get audit")
        )
    if path.startswith("/"):
        return method.lower() in create_openapi()["paths"].get(path, {})
    if name.startswith("hostler."):
        return importlib.import_module(name) is not None
    if name.startswith("hostler_"):
        return name in {metric.shown for metric in METRICS.values()}
    if name.split(".", maxsplit=1)[0] in ("pools", "fleet", "budgets", "services"):
        return is_setting(ConfigDocument, name.split("."))
    if name[0].isupper():
        return is_of_class(*name.split("."))
    return name in {*EventKind, *Reason, "events_gone"}


def is_of_class(name: str, attribute: str = "") -> bool:
    """Say whether a class of ours is there, with an attribute."""
    found = next((getattr(room, name) for room in ROOMS if hasattr(room, name)), None)
    if found is None or not attribute:
        return found is not None
    return attribute in getattr(found, "__struct_fields__", ()) or hasattr(found, attribute)


def is_setting(kind: Any, path: list[str]) -> bool:
    """Say whether a path leads through the documents of a configuration."""
    if not path:
        return True
    for one in structs(kind):
        hints = typing.get_type_hints(one)
        if path[0] in hints and is_setting(hints[path[0]], path[1:]):
            return True
    return False


def structs(kind: Any) -> list[type]:
    """The documents that a type may hold: itself, or in a list or mapping."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [found for each in typing.get_args(kind) for found in structs(each)]
