"""Dispatching: attempts leave, outcomes come back as inputs. There is no policy here.

Whether and when a command is tried again is state in the core. This module turns a command into one
call of a provider or an agent, gives it the deadline that the core's patience sets, and turns
whatever comes of it into one `CommandSettled`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import assert_never

import structlog

from hostler.base.errors import Failed
from hostler.core.delta import Dispatch
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyInput, CommandFailed, CommandSettled, Outcome
from hostler.engine import limits
from hostler.engine.agent_calls import call_agent
from hostler.engine.boundaries import Boundary, BoundaryHook, pass_by
from hostler.engine.gauges import Gauges
from hostler.engine.lanes import Call, Lanes
from hostler.engine.provider_calls import ProviderCalls
from hostler.model.command import (
    AssignRole,
    CheckMachine,
    CheckReady,
    ConfigureAllocation,
    EndLease,
    LaunchMachine,
    ListMachines,
    StartAllocation,
    StopAllocation,
    StopMachine,
)
from hostler.ports.agents import AgentGateway, AgentSessionLost, AgentUnreachable
from hostler.ports.provider import ProviderFailed

_log = structlog.get_logger(__name__)

Observe = Callable[[AnyInput], Awaitable[None]]
Attempt = Callable[[], Awaitable[Outcome]]


class Dispatcher:
    """Everything that is under way to the outside."""

    def __init__(
        self,
        providers: ProviderCalls,
        agents: AgentGateway,
        observe: Observe,
        *,
        gauges: Gauges,
        on_defect: Callable[[BaseException], None],
        boundary: BoundaryHook = pass_by,
    ) -> None:
        self._providers = providers
        self._agents = agents
        self._observe = observe
        self._gauges = gauges
        self._boundary = boundary
        self._lanes = Lanes(on_defect)

    def send(self, fleet: Fleet, dispatches: Iterable[Dispatch]) -> None:
        """Let attempts leave. What they need of the fleet is read before this returns."""
        for dispatch in dispatches:
            self._send(fleet, dispatch)

    def _send(self, fleet: Fleet, dispatch: Dispatch) -> None:
        command = dispatch.command
        match command:
            case LaunchMachine() | StopMachine() | CheckMachine() | ListMachines():
                attempt = self._providers.attempt(fleet, dispatch.command_id, command)
                target, call_count_max = (
                    f"provider:{command.provider}",
                    limits.PROVIDER_CALL_COUNT_MAX,
                )
                is_superseding = False
            case (
                StartAllocation()
                | ConfigureAllocation()
                | AssignRole()
                | StopAllocation()
                | CheckReady()
                | EndLease()
            ):
                attempt = call_agent(self._agents, fleet, dispatch.command_id, command)
                target, call_count_max = f"node:{command.node_id}", limits.AGENT_CALL_COUNT_MAX
                is_superseding = True
            case _:
                assert_never(command)
        leaves_by_s = asyncio.get_running_loop().time() + dispatch.patience_ms / 1_000
        call = Call(
            name=dispatch.command_id,
            make=partial(self._make, dispatch, attempt, leaves_by_s),
            is_superseding=is_superseding,
        )
        self._lanes.add(target, call, call_count_max=call_count_max)

    async def _make(self, dispatch: Dispatch, attempt: Attempt, deadline_s: float) -> None:
        """Make one attempt and tell how it ended."""
        self._boundary(Boundary.AFTER_DISPATCH_BEFORE_CALL)
        outcome = await _outcome_of(dispatch, attempt, deadline_s)
        self._boundary(Boundary.AFTER_CALL_BEFORE_SETTLE)
        code = outcome.code if isinstance(outcome, CommandFailed) else "succeeded"
        self._gauges.outcome_counts[(_tag_of(dispatch), code)] += 1
        await self._observe(CommandSettled(command_id=dispatch.command_id, outcome=outcome))

    async def close(self) -> None:
        """Give up everything under way; the outbox remembers it."""
        await self._lanes.close()


async def _outcome_of(dispatch: Dispatch, attempt: Attempt, deadline_s: float) -> Outcome:
    """Make the call; whatever it raises is an outcome."""
    try:
        async with asyncio.timeout_at(deadline_s):
            return await attempt()
    except TimeoutError:
        return CommandFailed(code="outcome_unknown", message="no answer within the deadline")
    except (ProviderFailed, AgentUnreachable, AgentSessionLost) as failure:
        return _as_outcome(failure)
    except Exception as error:  # noqa: BLE001 - the edge where a provider's defect becomes an outcome
        _log.exception("call_defect", command_id=dispatch.command_id, command=_tag_of(dispatch))
        return CommandFailed(code="defect", message=f"{type(error).__name__}: {error}"[:500])


def _as_outcome(failure: Failed) -> CommandFailed:
    return CommandFailed(
        code=failure.code, message=str(failure), retry_after_ms=failure.retry_after_ms
    )


def _tag_of(dispatch: Dispatch) -> str:
    return str(type(dispatch.command).__struct_config__.tag)
