"""Committed facts for people, in the past tense. They explain; no policy reads them."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class EventKind(StrEnum):
    """Every kind of event that there is."""

    CONFIGURATION_APPLIED = "configuration_applied"
    SERVER_STARTED = "server_started"
    BUNDLE_SUBMITTED = "bundle_submitted"
    BUNDLE_CHANGED = "bundle_changed"
    BUNDLE_DELETION_REQUESTED = "bundle_deletion_requested"
    BUNDLE_DELETED = "bundle_deleted"
    BUNDLE_RESET = "bundle_reset"
    JOB_STARTED = "job_started"
    JOB_STOPPED = "job_stopped"
    SHIFT_BEGUN = "shift_begun"
    SHIFT_ENDED = "shift_ended"
    SHIFT_SKIPPED = "shift_skipped"
    ROLLOUT_BEGUN = "rollout_begun"
    ROLLOUT_PAUSED = "rollout_paused"
    ROLLOUT_RESUMED = "rollout_resumed"
    ROLLOUT_FAILED = "rollout_failed"
    ROLLOUT_FINISHED = "rollout_finished"
    REPLICA_PLACED = "replica_placed"
    REPLICA_PLACEMENT_FAILED = "replica_placement_failed"
    REPLICA_ROOM_CLAIMED = "replica_room_claimed"
    REPLICA_CLAIM_ENDED = "replica_claim_ended"
    REPLICA_PREEMPTED = "replica_preempted"
    REPLICA_READY = "replica_ready"
    REPLICA_RECOVERING = "replica_recovering"
    REPLICA_MIGRATING = "replica_migrating"
    REPLICA_MIGRATED = "replica_migrated"
    REPLICA_MIGRATION_FAILED = "replica_migration_failed"
    REPLICA_REPAYING = "replica_repaying"
    REPLICA_BROKEN = "replica_broken"
    REPLICA_DROPPED = "replica_dropped"
    ALLOCATION_ENDED = "allocation_ended"
    NODE_REQUESTED = "node_requested"
    NODE_LAUNCHED = "node_launched"
    NODE_LAUNCH_FAILED = "node_launch_failed"
    NODE_READY = "node_ready"
    NODE_SUSPECTED = "node_suspected"
    NODE_HEARD_AGAIN = "node_heard_again"
    NODE_LOST = "node_lost"
    NODE_LABELLED = "node_labelled"
    NODE_CORDONED = "node_cordoned"
    NODE_UNCORDONED = "node_uncordoned"
    NODE_DRAIN_STARTED = "node_drain_started"
    NODE_DRAINED = "node_drained"
    NODE_DRAIN_OVERDUE = "node_drain_overdue"
    NODE_GONE_DOUBTED = "node_gone_doubted"
    NODE_STOPPING = "node_stopping"
    NODE_STUCK = "node_stuck"
    NODE_RETIRED = "node_retired"
    SPARE_DESIGNATED = "spare_designated"
    SPARE_USED = "spare_used"
    ORPHAN_FOUND = "orphan_found"
    ORPHAN_END_REQUESTED = "orphan_end_requested"
    LEASE_WAITING = "lease_waiting"
    LEASE_GRANTED = "lease_granted"
    LEASE_REFUSED = "lease_refused"
    LEASE_SETTLED = "lease_settled"
    NODE_CLEAN_UP_FAILED = "node_clean_up_failed"
    LEASE_RETIRING = "lease_retiring"
    TOKEN_CREATED = "token_created"
    TOKEN_REVOKED = "token_revoked"
    POOL_CLOSING = "pool_closing"
    POOL_CLOSED = "pool_closed"
    POOL_REOPENED = "pool_reopened"
    POOL_SIZES_CHANGED = "pool_sizes_changed"
    GROWTH_STOPPED = "growth_stopped"
    GROWTH_RESUMED = "growth_resumed"
    GROWTH_RETRIED = "growth_retried"
    BUDGET_WARNED = "budget_warned"
    SPEND_UNATTRIBUTED = "spend_unattributed"
    COMMAND_GIVEN_UP = "command_given_up"
    RECOVERY_HELD_BACK = "recovery_held_back"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One committed fact."""

    kind: EventKind
    at_ms: int
    about: dict[str, str]
    """Ids by noun: `node`, `pool`, `bundle`, `replica`, `allocation`, `lease`, `principal`."""
    data: dict[str, str | int | bool | None] = {}
