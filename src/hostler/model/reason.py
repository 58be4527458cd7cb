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
    SPREAD_LABEL = "spread_label"
    FAILURE_DOMAIN = "failure_domain"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti_affinity"
    COLOCATION = "colocation"
    NODE_LABELS = "node_labels"
    NODE_EXCLUDED = "node_excluded"
    RELIABILITY = "reliability"
    SPARE_RESERVED = "spare_reserved"
    LEASED = "leased"
    OFFER_NOT_ALLOWED = "offer_not_allowed"
    SLOTS_FULL = "slots_full"

    # why a replica or a lease waits
    NO_CAPACITY = "no_capacity"
    MACHINE_STARTING = "machine_starting"
    LIMIT_REACHED = "limit_reached"
    LAUNCHES_IN_FLIGHT = "launches_in_flight"
    OFFER_COOLING_DOWN = "offer_cooling_down"
    NO_OFFER_FITS = "no_offer_fits"
    POOL_NOT_CONFIGURED = "pool_not_configured"
    POOL_DISABLED = "pool_disabled"
    KEY_CAP_REACHED = "key_cap_reached"
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

    # why a node stays, or waits
    BOOTING = "booting"
    WARM_FLOOR = "warm_floor"
    SPARE_TARGET = "spare_target"
    IN_USE = "in_use"
    STOP_UNCONFIRMED = "stop_unconfirmed"
    SILENT = "silent"
    LISTENING_TOO_SHORT = "listening_too_short"
