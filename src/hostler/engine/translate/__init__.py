"""Translating: documents of people and messages of agents, to and from the words of the core."""

from hostler.engine.translate.agents import (
    agent_command,
    allocation_fact,
    allocation_facts,
    inventory_of,
    shape_of,
)
from hostler.engine.translate.bundles import configure_job, submit_bundle
from hostler.engine.translate.configuration import (
    apply_configuration,
    new_fleet_id,
    provider_problems,
    time_zone_problems,
)
from hostler.engine.translate.maintenance import add_maintenance

__all__ = [
    "add_maintenance",
    "agent_command",
    "allocation_fact",
    "allocation_facts",
    "apply_configuration",
    "configure_job",
    "inventory_of",
    "new_fleet_id",
    "provider_problems",
    "shape_of",
    "submit_bundle",
    "time_zone_problems",
]
