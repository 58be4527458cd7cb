"""Absorbing: each input's fact is written down. Nothing is decided here.

Requests are answered here: whether they can be accepted is a fact about them and the present
records. What follows from an accepted one is for the controllers.
"""

from __future__ import annotations

from typing import assert_never

from hostler.core.absorb import (
    acquiring,
    agents,
    auditing,
    bundles,
    configuration,
    growth,
    leases,
    maintenance,
    nodes,
    outcomes,
    receipts,
    rollouts,
    tokens,
)
from hostler.core.asking import AccessNoted, Request
from hostler.core.inputs import (
    AcquireLease,
    AgentSaidHello,
    AlarmRang,
    AllocationReported,
    AnyInput,
    ApplyConfiguration,
    CommandSettled,
    ConfirmLoss,
    ContactResumed,
    CordonNode,
    CreateToken,
    DeleteBundle,
    DrainNode,
    EndOrphan,
    ExtendLease,
    FenceLimitKept,
    FullScan,
    HeartbeatLease,
    InventoryReported,
    JoinAgent,
    LabelNode,
    NoticeReported,
    ReleaseLease,
    ResetBundle,
    RetryGrowth,
    RevokeToken,
    ServerStarted,
    SilenceNoticed,
    SteerRollout,
    SubmitBundle,
    UncordonNode,
)
from hostler.core.job_inputs import ConfigureJob, StartJob, StopJob
from hostler.core.maintenance_inputs import AddMaintenance, RemoveMaintenance
from hostler.core.txn import Txn


def absorb(txn: Txn, one: AnyInput) -> None:
    """Write down what one input says; a request with an idempotency key only once."""
    match one:
        case AcquireLease():
            acquiring.acquire(txn, one)  # keeps its own receipt: a refused wait is remembered too
        case Request():
            if one.idempotency_key and receipts.answer(txn, one):
                return
            written = auditing.before(txn, one)
            _absorb(txn, one)
            if written is not None:
                auditing.keep(txn, one, written)
            if one.idempotency_key:
                receipts.keep(txn, one)
        case _:
            _absorb(txn, one)


def _absorb(txn: Txn, one: AnyInput) -> None:  # noqa: C901, PLR0915  # one arm an input: a table, not a tangle
    match one:
        case HeartbeatLease():
            leases.heartbeat(txn, one)
        case ExtendLease():
            leases.extend(txn, one)
        case ReleaseLease():
            leases.release(txn, one)
        case CommandSettled():
            outcomes.settled(txn, one)
        case ApplyConfiguration():
            configuration.apply_configuration(txn, one)
        case SubmitBundle():
            bundles.submit(txn, one)
        case DeleteBundle():
            bundles.delete(txn, one)
        case StartJob():
            bundles.start_job(txn, one)
        case StopJob():
            bundles.stop_job(txn, one)
        case ConfigureJob():
            bundles.configure_job(txn, one)
        case ResetBundle():
            bundles.reset(txn, one)
        case SteerRollout():
            rollouts.steer(txn, one)
        case CordonNode():
            nodes.cordon(txn, one)
        case LabelNode():
            nodes.label(txn, one)
        case UncordonNode():
            nodes.uncordon(txn, one)
        case DrainNode():
            nodes.drain(txn, one)
        case AddMaintenance():
            maintenance.add(txn, one)
        case RemoveMaintenance():
            maintenance.remove(txn, one)
        case EndOrphan():
            nodes.end_orphan(txn, one)
        case RetryGrowth():
            growth.retry(txn, one)
        case ConfirmLoss():
            nodes.confirm_loss(txn, one)
        case AcquireLease():
            acquiring.acquire(txn, one)
        case CreateToken():
            tokens.create(txn, one)
        case RevokeToken():
            tokens.revoke(txn, one)
        case JoinAgent():
            agents.join(txn, one)
        case AgentSaidHello():
            agents.hello(txn, one)
        case InventoryReported():
            agents.inventory(txn, one)
        case NoticeReported():
            agents.notice(txn, one)
        case AllocationReported():
            agents.allocation(txn, one)
        case FenceLimitKept():
            agents.fence_limit(txn, one)
        case SilenceNoticed():
            agents.silence(txn, one)
        case ContactResumed():
            agents.contact(txn, one)
        case AccessNoted():
            auditing.noted(txn, one)
        case ServerStarted():
            leases.server_started(txn)
            configuration.server_started(txn, one)
        case FullScan():
            txn.touch_all()
        case AlarmRang():
            pass  # timers fire in every step
        case _:
            assert_never(one)
