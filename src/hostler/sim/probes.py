"""Probes: the rare branches that a range of histories must have been through.

A range that never takes one of them shows less than it seems to; then it is the simulator that is
broken, and the run fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RANGE_COUNT_MIN: Final = 200
"""From so many drawn histories on every probe must have been hit."""

REQUIRED: Final = (
    "agent.crashed",
    "agent.crashed_between_effects",
    "agent.kept_another_limit",
    "agent.left_a_stray",
    "agent.paused",
    "agent.refused_command",
    "agent.rejects",
    "agent.supervisor_failed",
    "client.doubled",
    "cloud.answer_lost",
    "cloud.call_late",
    "cloud.launch_repeated",
    "cloud.never_boots",
    "cloud.orphan",
    "cloud.swallowed",
    "cloud.unknown_but_done",
    "disk.commit_failed",
    "disk.cut_off_done",
    "disk.cut_off_lost",
    "disk.doubtful_done",
    "disk.doubtful_lost",
    "event.node_consolidated",
    "event.node_launch_failed",
    "event.node_maintenance_ended",
    "job.exited",
    "job.role_changed",
    "job.start_failed",
    "lessee.vanished",
    "link.resumed",
    "machine.froze",
    "machine.noticed",
    "machine.ready_check_failed",
    "machine.rebooted",
    "machine.vanished",
    "network.link_broken",
    "network.partition",
    "network.request_lost",
    "operator.added_maintenance",
    "operator.changed_limits",
    "operator.disabled_pool",
    "operator.labelled",
    "operator.removed_maintenance",
    "operator.removed_pool",
    "operator.swapped_options",
    "people.configured_job",
    "people.rested",
    "people.wished",
    "server.clock_jumped",
    "server.crashed_after_call_before_settle",
    "server.crashed_after_claim_before_load",
    "server.crashed_after_commit_before_keep",
    "server.crashed_after_dispatch_before_call",
    "server.crashed_after_keep_before_reply",
    "server.crashed_after_load_before_start",
    "server.crashed_after_publish_before_dispatch",
    "server.crashed_after_reply_before_publish",
    "server.crashed_before_commit",
    "server.crashed_before_prune",
    "server.crashed_during_load",
    "step.dropped",
    "supervisor.fenced",
    "supervisor.killed",
    "world.restarted",
)


def missing(probes: Mapping[str, int], required: tuple[str, ...] = REQUIRED) -> list[str]:
    """Return the probes that were never hit."""
    return [name for name in required if not probes.get(name)]
