"""Commands to agents as messages of the link, and what agents say as facts of the core."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from typing import assert_never

import msgspec

from hostler.base.ids import AllocationId, CommandId
from hostler.core.allocation_fact import AllocationFact
from hostler.core.fleet import Fleet
from hostler.core.rollout import config_of
from hostler.model import Allocation
from hostler.model.allocation import EndCause, Ended
from hostler.model.command import (
    AnyAgentCommand,
    AssignRole,
    CheckReady,
    ConfigureAllocation,
    EndLease,
    StartAllocation,
    StopAllocation,
)
from hostler.model.launch import JobConfig, Launch
from hostler.model.shape import Capability, Device, Shape
from hostler.ports.agents import AgentCommand
from hostler.wire import agent as wire
from hostler.wire import work


def agent_command(
    fleet: Fleet, command_id: CommandId, command: AnyAgentCommand
) -> AgentCommand | None:
    """Write a command as a message; `None` when what it is about is no more."""
    match command:
        case StartAllocation():
            allocation = fleet.allocations.get(command.allocation_id)
            if allocation is None or not allocation.is_live:
                return None
            return wire.StartAllocation(
                command_id=command_id,
                node_epoch=command.node_epoch,
                allocation_id=command.allocation_id,
                epoch=command.epoch,
                launch=_launch(fleet, allocation),
                config=_config(config_of(fleet, allocation)),
            )
        case ConfigureAllocation():
            allocation = fleet.allocations.get(command.allocation_id)
            config = None if allocation is None else _config(config_of(fleet, allocation))
            if config is None:
                return None
            return wire.ConfigureAllocation(
                command_id=command_id,
                node_epoch=command.node_epoch,
                allocation_id=command.allocation_id,
                epoch=command.epoch,
                config=config,
            )
        case AssignRole():
            return wire.AssignRole(
                command_id=command_id,
                node_epoch=command.node_epoch,
                allocation_id=command.allocation_id,
                epoch=command.epoch,
                role=command.role,
                term=command.term,
            )
        case StopAllocation():
            return wire.StopAllocation(
                command_id=command_id,
                node_epoch=command.node_epoch,
                allocation_id=command.allocation_id,
                epoch=command.epoch,
                grace_ms=command.grace_ms,
                reason=command.reason,
            )
        case CheckReady():
            return wire.CheckReady(
                command_id=command_id,
                node_epoch=command.node_epoch,
                argv=list(command.argv),
                timeout_ms=command.timeout_ms,
            )
        case EndLease():
            return wire.EndLease(
                command_id=command_id,
                node_epoch=command.node_epoch,
                lease_id=command.lease_id,
                epoch=command.epoch,
                clean_up=list(command.clean_up),
                clean_up_ms=command.clean_up_ms,
            )
        case _:
            assert_never(command)


def _config(config: JobConfig | None) -> work.Config | None:
    if config is None:
        return None
    return work.Config(
        number=config.generation,
        values_json=config.values_json,
        files=dict(config.files),
        signal=config.signal,
    )


def _launch(fleet: Fleet, allocation: Allocation) -> work.Launch:
    """Write down how to run an allocation. Field names agree, so the launch converts as it is."""
    node = fleet.nodes.get(allocation.node_id)
    given = msgspec.to_builtins(allocation.launch, builtin_types=())
    identity = work.Identity(
        fleet_id="" if fleet.settings is None else fleet.settings.fleet_id,
        bundle_id=allocation.bundle_id,
        job=allocation.job,
        replica_index=allocation.replica_index,
        role=allocation.role,
        replica_id=allocation.replica_id,
        pool="" if node is None else node.pool,
        tier="" if node is None else node.tier,
    )
    return msgspec.convert(
        {
            **{name: given[name] for name in Launch.__struct_fields__},
            "identity": msgspec.to_builtins(identity),
            "devices": {kind: list(ids) for kind, ids in allocation.devices.items()},
        },
        work.Launch,
    )


def allocation_facts(reports: Iterable[work.AllocationReport]) -> tuple[AllocationFact, ...]:
    """Read everything that a hello reports."""
    return tuple(allocation_fact(report) for report in reports)


def allocation_fact(report: work.AllocationReport) -> AllocationFact:
    """Read what an agent reports of one allocation."""
    return AllocationFact(
        allocation_id=AllocationId(report.allocation_id),
        epoch=report.epoch,
        phase=report.phase.value,
        started_at_ms=report.started_at_ms,
        config_written=report.config_written,
        config_applied=report.config_applied,
        ended=None if report.ended is None else _ended(report.ended),
    )


def _ended(ended: work.Ended) -> Ended:
    return Ended(
        cause=EndCause(ended.cause.value),
        exit_code=ended.exit_code,
        signal=_signal_number(ended.signal),
        message=ended.message,
    )


def _signal_number(name: str | None) -> int | None:
    """Return a signal's number on this host; `None` for one that only the node's system has."""
    if name is None or name not in signal.Signals.__members__:
        return None
    return signal.Signals[name].value


def shape_of(inventory: work.Inventory) -> Shape:
    """Read an inventory. What is not reported yet stays so."""
    return Shape(
        capacity=inventory.capacity,
        cores_milli=inventory.cores_milli,
        memory_bytes=inventory.memory_bytes,
        capabilities=None
        if inventory.capabilities is None
        else tuple(
            Capability(name=one.name, count=one.count, attributes=_attributes(one.attributes))
            for one in inventory.capabilities
        ),
        devices=tuple(
            Device(kind=one.kind, device_id=one.id, attributes=_attributes(one.attributes))
            for one in inventory.devices or ()
        ),
    )


def inventory_of(shape: Shape) -> work.Inventory:
    """Write what an offer promises as what an agent reports."""
    return work.Inventory(
        capacity=shape.capacity,
        cores_milli=shape.cores_milli,
        memory_bytes=shape.memory_bytes,
        capabilities=None
        if shape.capabilities is None
        else [
            work.Capability(name=one.name, count=one.count, attributes=dict(one.attributes))
            for one in shape.capabilities
        ],
        devices=[
            work.Device(kind=one.kind, id=one.device_id, attributes=dict(one.attributes))
            for one in shape.devices
        ],
    )


def _attributes(attributes: dict[str, work.AttributeValue]) -> dict[str, str]:
    """Write values as people write them in requirements."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in attributes.items()
    }
