"""What a trial is, and the table of all of them.

A theme is a module full of scripts; each script is entered into the table by `@trial`, with the
name by which its complaint is known and the fleet that it is about; its docstring says what is
right.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hostler.sim.cloud import CloudPlan
from hostler.sim.machine import MachinePlan
from hostler.sim.scenario import FleetPlan, PoolPlan, SettingsPlan, TierPlan

if TYPE_CHECKING:
    from hostler.sim.trials.stage import Stage

THEMES: Final = (
    "leaks",
    "doubles",
    "busy",
    "stuck",
    "restarts",
    "herds",
    "quotas",
    "losses",
    "rollouts",
    "fairness",
    "calendars",
    "words",
    "reuse",
    "money",
)
"""Modules of trials, in the order of the list of complaints."""

_TIER_FIELDS: Final = frozenset(TierPlan.__struct_fields__) - {"name"}
_POOL_FIELDS: Final = frozenset(PoolPlan.__struct_fields__)

PROMPT: Final = CloudPlan(delay_ms=(50, 200), boot_ms=(2_000, 4_000), stop_ms=(500, 1_000))
"""A cloud in which only what the trial is about goes wrong."""


REMEMBERING: Final = SettingsPlan(ended_ms=14_400_000, event_count_max=1_000_000)
"""What is over stays long enough for a script to ask about it."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the table."""

    name: str
    """Of the complaint, as `L01`."""
    right: str
    """What must come of it."""
    script: Callable[[Stage], None]
    fleet: FleetPlan
    pool_changes: dict[str, dict[str, Any]] = {}
    """By pool: fields that plans of pools do not have."""
    cloud: CloudPlan = PROMPT
    machines: MachinePlan = MachinePlan(agent_returns_ms=(500, 2_000))
    seed_count: int = 1
    """Of a race: how many interleavings are tried."""


class PoolOf(msgspec.Struct, frozen=True):
    """A pool of a trial: its plan, and what plans do not have."""

    plan: PoolPlan
    changes: dict[str, Any]


def a_pool(name: str = "p", **fields: Any) -> PoolOf:
    """Return a pool with one elastic tier `cloud`; fields of the tier are given beside its own."""
    tier = {key: fields.pop(key) for key in list(fields) if key in _TIER_FIELDS}
    tiers = fields.pop("tiers", None) or (TierPlan(name="cloud", **{"node_count_max": 20, **tier}),)
    plan = {key: fields.pop(key) for key in list(fields) if key in _POOL_FIELDS}
    return PoolOf(PoolPlan(**{"lease_ms": 600_000, **plan, "name": name, "tiers": tiers}), fields)


TABLE: dict[str, Trial] = {}


def trial(
    name: str,
    *pools: PoolOf,
    settings: SettingsPlan | None = None,
    **more: Any,
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Enter a script into the table."""

    def enter(script: Callable[[Stage], None]) -> Callable[[Stage], None]:
        given = pools or (a_pool(),)
        TABLE[name] = Trial(
            name=name,
            right=" ".join((script.__doc__ or "").split()),
            script=script,
            fleet=FleetPlan(
                pools=tuple(each.plan for each in given), settings=settings or REMEMBERING
            ),
            pool_changes={each.plan.name: each.changes for each in given},
            **more,
        )
        return script

    return enter


def all_trials() -> dict[str, Trial]:
    """Return the whole table."""
    for theme in THEMES:
        import_module(f"hostler.sim.trials.{theme}")
    return TABLE
