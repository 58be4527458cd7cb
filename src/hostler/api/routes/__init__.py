"""Handlers by noun. `ROUTES` is all of them."""

from hostler.api.routes import (
    agents,
    allocations,
    audit,
    bundles,
    configuration,
    events,
    execs,
    explanations,
    leases,
    life,
    nodes,
    plans,
    pools,
    rollouts,
    services,
    spend,
    system,
    tokens,
)

ROUTES = [
    *system.ROUTES,
    *configuration.ROUTES,
    *bundles.ROUTES,
    *allocations.ROUTES,
    *nodes.ROUTES,
    *rollouts.ROUTES,
    *plans.ROUTES,
    *pools.ROUTES,
    *services.ROUTES,
    *explanations.ROUTES,
    *leases.ROUTES,
    *execs.ROUTES,
    *tokens.ROUTES,
    *spend.ROUTES,
    *events.ROUTES,
    *audit.ROUTES,
    *life.ROUTES,
    *agents.ROUTES,
]
"""Every handler of the API."""
