"""Commands: what we ask the outside to do, and the outbox entry that remembers each.

A command's id is made of what it is about, so sending it again is the same command.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, TypeAlias

from hostler.base.ids import AllocationId, CommandId, LeaseId, MachineId, NodeId
from hostler.model.pool import Offer
from hostler.model.record import Record, Value


class LaunchMachine(Value, frozen=True, kw_only=True, tag="launch_machine"):
    """Ask a provider for the machine behind a node."""

    node_id: NodeId
    epoch: int
    pool: str
    tier: str
    provider: str
    offer: str
    zone: str = ""
    made_of: Offer | None = None
    """What is to be launched, as it was configured when it was asked for; together with
    `options_json`. A launch that is tried again after a change asks for the same thing again."""
    options_json: str = "{}"
    boot_ms: int = 600_000
    """How long it may stay unanswered: as long as its machine may take to boot."""


class StopMachine(Value, frozen=True, kw_only=True, tag="stop_machine"):
    """Ask a provider to end the machine behind a node and to say whether it is gone.

    Settled only when the provider says gone: by `machine_id` where we know it, else by the label
    that the launch gave it.
    """

    node_id: NodeId
    epoch: int
    pool: str
    tier: str
    provider: str
    machine_id: MachineId | None
    met_machine_ids: tuple[MachineId, ...] = ()
    """Those that attempts by label have met, so that their ends can be asked about."""
    is_boot_log_wanted: bool = False
    """Its boot has failed: bring what it wrote, before it ends."""


class CheckMachine(Value, frozen=True, kw_only=True, tag="check_machine"):
    """Ask a provider whether the machine behind a silent node still exists."""

    node_id: NodeId
    pool: str
    tier: str
    provider: str
    machine_id: MachineId
    is_boot_log_wanted: bool = False
    """It boots: if it is gone, bring what it wrote."""


class ListMachines(Value, frozen=True, kw_only=True, tag="list_machines"):
    """Ask a provider for every machine that carries our fleet's label."""

    provider: str


class StartAllocation(Value, frozen=True, kw_only=True, tag="start_allocation"):
    """Ask an agent to start a workload; what to start is in the allocation's record."""

    node_id: NodeId
    node_epoch: int
    allocation_id: AllocationId
    epoch: int


class ConfigureAllocation(Value, frozen=True, kw_only=True, tag="configure_allocation"):
    """Ask an agent to give a workload its job's configuration, as it is when this leaves."""

    node_id: NodeId
    node_epoch: int
    allocation_id: AllocationId
    epoch: int


class AssignRole(Value, frozen=True, kw_only=True, tag="assign_role"):
    """Ask an agent to tell a running workload the role that it has from now on."""

    node_id: NodeId
    node_epoch: int
    allocation_id: AllocationId
    epoch: int
    role: str
    term: int
    """Which of the changes of its role this is, counted from 1."""


class StopAllocation(Value, frozen=True, kw_only=True, tag="stop_allocation"):
    """Ask an agent to stop a workload: grace, then kill. May name one that we have no record of."""

    node_id: NodeId
    node_epoch: int
    allocation_id: AllocationId
    epoch: int
    grace_ms: int
    reason: str


class CheckReady(Value, frozen=True, kw_only=True, tag="check_ready"):
    """Ask an agent to try its pool's ready check once. A refusal says that it did not pass."""

    node_id: NodeId
    node_epoch: int
    argv: tuple[str, ...]
    timeout_ms: int


class EndLease(Value, frozen=True, kw_only=True, tag="end_lease"):
    """Ask an agent to end all processes of a settled lease, remove its folder, and clean up."""

    node_id: NodeId
    node_epoch: int
    lease_id: LeaseId
    epoch: int
    clean_up: tuple[str, ...] = ()
    """Run once nothing is left; the slot is not free before. A refusal says that it failed."""
    clean_up_ms: int = 0


ProviderCommand: TypeAlias = LaunchMachine | StopMachine | CheckMachine | ListMachines
"""What the core asks of providers."""

AnyAgentCommand: TypeAlias = (
    StartAllocation | ConfigureAllocation | AssignRole | StopAllocation | CheckReady | EndLease
)
"""What the core asks of agents: each carries the node's epoch, and an agent obeys no older one."""

Command: TypeAlias = ProviderCommand | AnyAgentCommand


class OutboxPhase(StrEnum):
    """Waits for its next attempt, or is out."""

    DUE = "due"
    SENT = "sent"


class OutboxEntry(Record, frozen=True, kw_only=True):
    """A command that is committed and not yet settled."""

    KIND: ClassVar[str] = "command"

    command_id: CommandId
    command: Command
    phase: OutboxPhase
    created_at_ms: int
    attempt_count: int = 0
    next_at_ms: int
    """When it is sent (again): the next try while due, the end of patience while sent."""
    is_doubtful: bool = False
    """An attempt may have had its effect without our hearing of it."""
    last_code: str = ""
    """How the last attempt failed, while one has."""
    last_message: str = ""

    @property
    def key(self) -> str:
        """The command's id."""
        return self.command_id
