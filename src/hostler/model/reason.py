"""Every named reason for *not now* and *not here*. A closed set: people and programs go by it."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something is not (yet) done, or why a node was not chosen."""

    # why a node is not chosen (spec/placement.md C-044), in the order in which they are tried
    WRONG_POOL = "wrong_pool"
    WRONG_TIER = "wrong_tier"
    NODE_NOT_RUNNING = "node_not_running"
    UNREACHABLE = "unreachable"
    CORDONED = "cordoned"
    DRAINING = "draining"
    EXCLUDED_RECENT_FAILURE = "excluded_recent_failure"
    NOT_REPORTED = "not_reported"
    CAPACITY = "capacity"
    CORES = "cores"
    MEMORY = "memory"
    CAPABILITY_MISSING = "capability_missing"
    CAPABILITY_COUNT = "capability_count"
    CAPABILITY_ATTRIBUTE = "capability_attribute"
    SPREAD_NODE = "spread_node"
    SPREAD_ZONE = "spread_zone"
    SPREAD_TIER = "spread_tier"
    SPREAD_PROVIDER = "spread_provider"
    RELIABILITY = "reliability"
    SPARE_RESERVED = "spare_reserved"
    LEASED = "leased"
    SLOTS_FULL = "slots_full"

    # why a replica or a lease waits
    NO_CAPACITY = "no_capacity"
    ROOM_CLAIMED = "room_claimed"
    GANG_INCOMPLETE = "gang_incomplete"
    PREEMPTED = "preempted"
    MACHINE_STARTING = "machine_starting"
    LIMIT_REACHED = "limit_reached"
    LAUNCHES_IN_FLIGHT = "launches_in_flight"
    LAUNCH_RATE = "launch_rate"
    GROWTH_STOPPED = "growth_stopped"
    PROVIDER_PAUSED = "provider_paused"
    OFFER_COOLING_DOWN = "offer_cooling_down"
    NO_OFFER_FITS = "no_offer_fits"
    POOL_NOT_CONFIGURED = "pool_not_configured"
    POOL_DISABLED = "pool_disabled"
    KEY_CAP_REACHED = "key_cap_reached"
    AFFINITY_WAIT = "affinity_wait"
    BACKING_OFF = "backing_off"
    RESTART_CEILING = "restart_ceiling"
    DORMANT = "dormant"
    FENCE_PENDING = "fence_pending"
    MASS_LOSS_BRAKE = "mass_loss_brake"
    BUNDLE_BROKEN = "bundle_broken"
    BAND_DROPPED = "band_dropped"
    MIGRATING = "migrating"
    OVERLAP_FORBIDDEN = "overlap_forbidden"

    # why a lease was refused
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    OVERLOADED = "overloaded"
    UNSATISFIABLE = "unsatisfiable"
    AFFINITY_GONE = "affinity_gone"

    # why a node stays, or waits
    BOOTING = "booting"
    WARM_FLOOR = "warm_floor"
    SPARE_TARGET = "spare_target"
    REPLACING = "replacing"
    IN_USE = "in_use"
    STOP_UNCONFIRMED = "stop_unconfirmed"
    FOREIGN_MACHINE = "foreign_machine"
    SILENT = "silent"
    LISTENING_TOO_SHORT = "listening_too_short"
