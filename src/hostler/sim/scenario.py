"""Scenarios: a fleet, what people do with it, and what goes wrong, as a document.

A file in `tests/sim/scenarios` is one; without a file, `hostler.sim.swarm` draws one from the seed.
Rates are per hour of virtual time; ranges are inclusive; chances are in a million.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from hostler.sim.cloud import CloudPlan
from hostler.sim.disk import DiskPlan
from hostler.sim.machine import MachinePlan
from hostler.sim.network import NetworkPlan
from hostler.sim.server import ServerPlan

Range = tuple[int, int]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a scenario; unknown fields are mistakes."""


class TierPlan(_Part, frozen=True, kw_only=True):
    """One tier."""

    name: str
    machine_count: int = 0
    """Machines that the operator owns; makes the tier a fixed one."""
    node_count_max: int = 0
    """Ceiling; makes the tier an elastic one."""
    capacity: int = 8
    """Of one node."""
    is_interruptible: bool = False
    boot_ms: int = 60_000
    has_agents: bool = True
    """False: nothing of ours runs on its machines, and the server speaks for them."""
    zone: str = ""
    edition: int = 0
    """Of the provider's options; another one makes other machines."""


class PoolPlan(_Part, frozen=True, kw_only=True):
    """One pool."""

    name: str
    is_enabled: bool = True
    tiers: tuple[TierPlan, ...]
    warm_count: int = 0
    spare_count: int = 0
    slot_count: int = 1
    idle_ms: int = 120_000
    retire_notice_ms: int = 60_000
    lease_ms: int = 60_000
    lease_ms_max: int | None = None
    lease_per_key_max: int | None = None
    waiting_count_max: int = 50
    use_count_max: int | None = None
    has_clean_up: bool = False
    has_ready_check: bool = False
    launch_count_max: int = 5
    has_service: bool = False
    """A node service runs on each of its nodes."""
    is_saving: bool = False
    """Machines that are little used are emptied."""


class SettingsPlan(_Part, frozen=True, kw_only=True):
    """The settings that differ from the product's own."""

    heartbeat_ms: int = 5_000
    suspect_after_ms: int = 15_000
    fence_after_ms: int = 35_000
    lost_after_ms: int = 60_000
    list_every_ms: int = 60_000
    orphan_grace_ms: int = 120_000
    lost_node_count_max: int = 20
    brake_window_ms: int = 300_000
    ageing_ms: int = 3_600_000
    preemption_window_ms: int = 600_000
    is_bronze_victim_dropped: bool = False
    restart_count_max: int = 6
    restart_window_ms: int = 3_600_000
    maintenance_ms: Range | None = None
    """Since the beginning: when the machines of the first pool are worked on."""
    ended_ms: int = 300_000
    event_count_max: int = 5_000
    journal_count_max: int = 1_000


class FleetPlan(_Part, frozen=True, kw_only=True):
    """What is configured."""

    pools: tuple[PoolPlan, ...]
    settings: SettingsPlan = SettingsPlan()


class SubmitBundles(_Part, frozen=True, kw_only=True, tag="submit_bundles", tag_field="kind"):
    """People submit bundles, change them and delete them again."""

    bundles_per_hour: int = 60
    replica_count: Range = (1, 2)
    bundle_count_max: int = 8
    """Bundles at once."""
    bands: tuple[str, ...] = ("gold", "silver", "bronze")
    capacity: Range = (1, 4)
    keeps_ppm: int = 200_000
    """Jobs with `disconnect: keep`."""
    required_spread_ppm: int = 100_000
    broken_ppm: int = 100_000
    """Versions that crash as soon as they run."""
    steers_per_hour: int = 60
    """How often somebody stops, starts or resets a job, or steers a rollout."""
    configs_per_hour: int = 0
    """How often somebody changes nothing but what the jobs of a bundle work by; 0: they have no
    such thing."""
    gang_ppm: int = 150_000
    """Bundles that start whole or not at all."""
    wishes_ppm: int = 0
    """Bundles and jobs that wish something about their neighbours, domains or nodes."""


class AcquireLeases(_Part, frozen=True, kw_only=True, tag="acquire_leases", tag_field="kind"):
    """Runs take leases, work under them, and give them back, or not."""

    leases_per_hour: int = 240
    hold_ms: Range = (1_000, 120_000)
    timeout_ms: Range = (0, 60_000)
    poison_ppm: int = 50_000
    abandoned_ppm: int = 50_000
    """Holders that vanish without a word."""
    fairness_keys: int = 3


class OperateNodes(_Part, frozen=True, kw_only=True, tag="operate_nodes", tag_field="kind"):
    """Operators cordon, uncordon and drain nodes."""

    per_hour: int = 30
    retire_ppm: int = 300_000
    labels_ppm: int = 0
    """How often a node is given a label instead."""


class ChangeConfiguration(
    _Part, frozen=True, kw_only=True, tag="change_configuration", tag_field="kind"
):
    """Operators change floors, ceilings and spares."""

    per_hour: int = 6
    settings_ppm: int = 0
    """How often they change limits of the fleet and of its pools, too."""


class PlanMaintenance(_Part, frozen=True, kw_only=True, tag="plan_maintenance", tag_field="kind"):
    """Operators have machines worked on at times that they name, and change their minds."""

    per_hour: int = 20
    begin_ms: Range = (0, 120_000)
    """From when it is said until it begins."""
    lasts_ms: Range = (10_000, 60_000)
    lead_ms: Range = (0, 30_000)


class RestNowAndThen(_Part, frozen=True, kw_only=True, tag="rest", tag_field="kind"):
    """Nobody wants anything for a while: what stands idle is let go, and timers are alone."""

    per_hour: int = 6
    rest_ms: Range = (60_000, 300_000)


Workload = (
    SubmitBundles
    | AcquireLeases
    | OperateNodes
    | PlanMaintenance
    | ChangeConfiguration
    | RestNowAndThen
)


class CrashServer(_Part, frozen=True, kw_only=True, tag="crash_server", tag_field="kind"):
    """The server is killed, at some instant or at a boundary."""

    per_hour: int = 20
    at: str = "any-durable-boundary"
    """A boundary by name, `any-durable-boundary`, or `any-instant`."""


class Partition(_Part, frozen=True, kw_only=True, tag="partition", tag_field="kind"):
    """Some machines cannot be heard, cannot hear, or both, for a while."""

    per_hour: int = 12
    stability_ms: Range = (5_000, 180_000)
    share_ppm: int = 300_000
    """Chance of each machine to be on the other side."""


class BreakLinks(_Part, frozen=True, kw_only=True, tag="break_links", tag_field="kind"):
    """Connections break."""

    per_hour: int = 120


class KillMachines(_Part, frozen=True, kw_only=True, tag="kill_machines", tag_field="kind"):
    """Machines die: the provider's are gone, freeze though billed, or the operator's reboot."""

    per_hour: int = 12
    reboot_ms: Range = (5_000, 120_000)
    freezes_ppm: int = 300_000


class CrashAgents(_Part, frozen=True, kw_only=True, tag="crash_agents", tag_field="kind"):
    """Agents are killed, also between two effects; supervisors too."""

    per_hour: int = 60
    supervisor_ppm: int = 200_000


class PauseAgents(_Part, frozen=True, kw_only=True, tag="pause_agents", tag_field="kind"):
    """Agents stand still for a while (stopped, starved) and then take in all they have missed.

    Whole machines do not: nothing that runs on a machine can notice that it stood still before it
    has gone on, so only ending the machine would make sure of one that did.
    """

    per_hour: int = 20
    pause_ms: Range = (1_000, 60_000)


class JumpClock(_Part, frozen=True, kw_only=True, tag="jump_clock", tag_field="kind"):
    """The wall clock of the server's host is set."""

    per_hour: int = 6
    forward_ms: Range = (1, 2_000)
    backward_ms: Range = (1, 30_000)


class TakeBack(_Part, frozen=True, kw_only=True, tag="take_back", tag_field="kind"):
    """The provider wants a machine back: it says so, to the agent or in its lists, and ends it."""

    per_hour: int = 12
    notice_ms: Range = (0, 120_000)
    false_ppm: int = 200_000
    """Notices that only recommend to leave."""


class RejectStarts(_Part, frozen=True, kw_only=True, tag="reject_starts", tag_field="kind"):
    """An agent refuses all that it is to start, for a while."""

    per_hour: int = 12
    for_ms: Range = (5_000, 120_000)


class RestartEverything(
    _Part, frozen=True, kw_only=True, tag="restart_everything", tag_field="kind"
):
    """The power fails: server, agents and the operator's machines all begin anew."""

    per_hour: int = 4
    off_ms: Range = (1_000, 60_000)


Fault = (
    CrashServer
    | Partition
    | BreakLinks
    | KillMachines
    | CrashAgents
    | PauseAgents
    | JumpClock
    | TakeBack
    | RejectStarts
    | RestartEverything
)


class Phases(_Part, frozen=True, kw_only=True):
    """How the time is divided."""

    safety_ms: int = 1_200_000
    """With faults and work."""
    liveness_ms: int = 1_500_000
    """The world is healed, nobody asks for more: within this it must converge."""


class Expect(_Part, frozen=True, kw_only=True):
    """What must have happened, beside nothing bad."""

    probes: tuple[str, ...] = ()


class Scenario(_Part, frozen=True, kw_only=True):
    """One history's rules."""

    title: str
    fleet: FleetPlan
    workload: tuple[Workload, ...] = ()
    fault: tuple[Fault, ...] = ()
    network: NetworkPlan = NetworkPlan()
    cloud: CloudPlan = CloudPlan()
    disk: DiskPlan = DiskPlan()
    machines: MachinePlan = MachinePlan()
    server: ServerPlan = ServerPlan()
    phases: Phases = Phases()
    ticks_max: int = 500_000
    """Events; a history that needs more spins."""
    expect: Expect = Expect()


def read_scenario(path: Path) -> Scenario:
    """Read a scenario file: TOML, or JSON as shrinking leaves it.

    Raises:
        msgspec.ValidationError: It is not a scenario; the message says where.
    """
    if path.suffix == ".json":
        return msgspec.json.decode(path.read_bytes(), type=Scenario)
    return msgspec.toml.decode(path.read_bytes(), type=Scenario)
