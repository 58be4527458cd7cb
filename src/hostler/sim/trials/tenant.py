"""A tenant of a trial: asks for one lease, keeps it alive, and gives it back when told to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostler.base.ids import LeaseId
from hostler.core.inputs import AcquireLease, HeartbeatLease, ReleaseLease
from hostler.core.replies import Accepted, Refused, Result
from hostler.model import Lease
from hostler.model.lease import LeaseOutcome, LeasePhase

if TYPE_CHECKING:
    from hostler.sim.trials.stage import Stage


class Tenant:
    """One of those who ask.

    Attributes:
        refusal: The answer that its request got, if that was no lease.
    """

    def __init__(
        self, stage: Stage, name: str, pool: str, timeout_ms: int, wishes: dict[str, Any]
    ) -> None:
        self._stage = stage
        self.name = name
        self.refusal: Refused | None = None
        self.lease_ids: dict[str, None] = {}
        """Every lease that any answer named; more than one would be one too many."""
        self._is_left = False
        self._is_silent = False
        attempts_max = wishes.pop("attempts_max", 60)
        given = {"principal": name, "idempotency_key": name, **wishes}
        stage.client.ask(
            lambda request_id: AcquireLease(
                request_id=request_id, pool=pool, timeout_ms=timeout_ms, **given
            ),
            self._answered,
            attempts_max=attempts_max,
        )
        stage.world.after(5_000, self._renew)

    def _answered(self, result: Result) -> None:
        if isinstance(result, Accepted):
            self.lease_ids[result.subject_id] = None
            if self._is_left:
                self._release(LeaseOutcome.HEALTHY, "")
        else:
            self.refusal = result

    @property
    def lease_id(self) -> str:
        """The lease, once the request is answered."""
        return next(iter(self.lease_ids), "")

    @property
    def lease(self) -> Lease | None:
        """The lease as it is committed, once the request is answered."""
        return self._stage.lease(self.lease_id) if self.lease_ids else None

    @property
    def phase(self) -> LeasePhase | None:
        """How far it is."""
        lease = self.lease
        return None if lease is None else lease.phase

    @property
    def is_held(self) -> bool:
        """True while it has a slot."""
        return self.phase is LeasePhase.HELD

    @property
    def node_id(self) -> str:
        """Where it has or had its slot."""
        lease = self.lease
        return "" if lease is None else str(lease.node_id)

    @property
    def outcome(self) -> LeaseOutcome | None:
        """How it ended."""
        lease = self.lease
        return None if lease is None else lease.outcome

    def _renew(self) -> None:
        if self._is_left or self._is_silent:
            return
        self._stage.world.after(20_000, self._renew)
        process = self._stage.server.process
        lease = None if process is None else process.fleet.leases.get(self.lease_id)
        if lease is None or lease.phase is not LeasePhase.HELD:
            return
        self._stage.client.ask(
            lambda request_id: HeartbeatLease(
                request_id=request_id,
                principal=self.name,
                lease_id=LeaseId(lease.lease_id),
                epoch=lease.epoch,
            ),
            attempts_max=2,
        )

    def work(self, command: str = "work") -> None:
        """Run something under the lease, once there is one."""
        lease = self.lease
        if lease is not None:
            self._stage.client.exec(lease.lease_id, lease.epoch, f"{self.name}.{command}")

    def fall_silent(self) -> None:
        """Vanish without a word."""
        self._is_silent = True

    def leave(
        self, outcome: LeaseOutcome = LeaseOutcome.HEALTHY, *, detail: str = "", attempts: int = 60
    ) -> None:
        """Give the lease back, or leave the line."""
        if self._is_left:
            return
        self._is_left = True
        if self.lease_ids:
            self._release(outcome, detail, attempts)

    def _release(self, outcome: LeaseOutcome, detail: str, attempts: int = 60) -> None:
        lease_id = self.lease_id
        self._stage.client.ask(
            lambda request_id: ReleaseLease(
                request_id=request_id,
                principal=self.name,
                lease_id=LeaseId(lease_id),
                outcome=outcome,
                detail=detail,
            ),
            attempts_max=attempts,
        )
