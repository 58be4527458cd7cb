"""Runs that take leases: they wait, work, renew, and give back, or vanish."""

from __future__ import annotations

from typing import Any

from hostler.base.ids import LeaseId, NodeId
from hostler.base.rng import Stream
from hostler.core.inputs import AcquireLease, HeartbeatLease, ReleaseLease
from hostler.core.replies import Accepted, Result
from hostler.model import Lease
from hostler.model.lease import LeaseOutcome, LeasePhase, Share
from hostler.sim.client import Client
from hostler.sim.scenario import AcquireLeases
from hostler.sim.workloads.rhythm import keep_wanting


class Lessees:
    """One plan's runs."""

    def __init__(
        self, client: Client, plan: AcquireLeases, lease_ms_by_pool: dict[str, int]
    ) -> None:
        self.client = client
        self.plan = plan
        self.lease_ms_by_pool = lease_ms_by_pool
        self.rng = client.world.stream("workload", "leases")
        self.wishing = client.world.stream("workload", "lease wishes")
        self._count = 0

    def begin(self) -> None:
        """Begin to take leases."""
        keep_wanting(self.client.world, self.rng, self.plan.leases_per_hour, self._act)

    def _act(self) -> None:
        self._count += 1
        _Run(self, f"run{self._count}").acquire()


class _Run:
    """One run, from wanting a slot to having given it back."""

    def __init__(self, lessees: Lessees, name: str) -> None:
        self._client = lessees.client
        self._world = lessees.client.world
        self._plan = lessees.plan
        self._rng: Stream = lessees.rng
        self._wishing: Stream = lessees.wishing
        self._name = name
        self._pool = self._rng.choice(sorted(lessees.lease_ms_by_pool))
        self._lease_ms = lessees.lease_ms_by_pool[self._pool]
        self._lease: Lease | None = None
        self._lease_id = ""
        self._exec_count = 0
        self._is_over = False

    def acquire(self) -> None:
        """Ask for a slot. One in ten does not dare to ask twice, having no key."""
        rng, plan = self._rng, self._plan
        has_key = not rng.chance(100_000)
        timeout_ms = rng.between(*plan.timeout_ms)
        fairness_key = f"k{rng.below(max(plan.fairness_keys, 1))}"
        priority = rng.below(2)
        wishes = self._wishes()
        self._client.ask(
            lambda request_id: AcquireLease(
                request_id=request_id,
                principal=self._name,
                pool=self._pool,
                fairness_key=fairness_key,
                priority=priority,
                timeout_ms=timeout_ms,
                idempotency_key=self._name if has_key else "",
                **wishes,
            ),
            self._acquired,
            attempts_max=60 if has_key else 1,
        )

    def _wishes(self) -> dict[str, Any]:
        """Draw what a run asks for beside the usual; most ask for nothing."""
        rng = self._wishing
        match rng.below(8):
            case 0:
                return {"share": rng.choice((Share.NONE, Share.SAME_KEY))}
            case 1:
                return {"ack_ms": 10_000}
            case 2:
                node_id = NodeId(f"n-{1 + rng.below(5):06d}")
                return {"affinity_node_id": node_id, "affinity_wait_ms": rng.choice((0, 5_000))}
            case 3:
                return {"excluded_node_ids": (NodeId(f"n-{1 + rng.below(5):06d}"),)}
            case _:
                return {}

    def _acquired(self, result: Result) -> None:
        if isinstance(result, Accepted):
            self._lease_id = result.subject_id
            self._poll()

    def _poll(self) -> None:
        if self._lease is None and not self._is_over:
            self._client.read_lease(self._lease_id, self._looked)
            self._world.after(self._rng.between(500, 2_000), self._poll)

    def _looked(self, lease: Lease | None) -> None:
        if self._lease is not None or self._is_over:
            return
        if lease is None or lease.phase in (LeasePhase.REFUSED, LeasePhase.SETTLED):
            self._is_over = True
        elif lease.phase is LeasePhase.HELD:
            self._lease = lease
            self._work(lease)

    def _work(self, lease: Lease) -> None:
        rng = self._rng
        hold_ms = rng.between(*self._plan.hold_ms)
        self._exec(lease)
        for _ in range(rng.below(3)):
            self._world.after(rng.below(hold_ms + 1), self._exec, lease)
        if rng.chance(self._plan.abandoned_ppm):
            self._world.probe("lessee.vanished")
            self._is_over = True
            return
        self._world.after(self._lease_ms // 3, self._renew, lease)
        self._world.after(hold_ms, self._give_back, lease)

    def _exec(self, lease: Lease) -> None:
        if not self._is_over:
            self._exec_count += 1
            self._client.exec(lease.lease_id, lease.epoch, f"{self._name}.{self._exec_count}")

    def _renew(self, lease: Lease) -> None:
        if self._is_over:
            return
        self._client.ask(
            lambda request_id: HeartbeatLease(
                request_id=request_id,
                principal=self._name,
                lease_id=LeaseId(lease.lease_id),
                epoch=lease.epoch,
            ),
            self._renewed,
            attempts_max=2,
        )
        self._world.after(self._lease_ms // 3, self._renew, lease)

    def _renewed(self, result: Result) -> None:
        if not isinstance(result, Accepted):
            self._is_over = True

    def _give_back(self, lease: Lease) -> None:
        if self._is_over:
            return
        self._is_over = True
        is_poison = self._rng.chance(self._plan.poison_ppm)
        outcome = LeaseOutcome.POISON if is_poison else LeaseOutcome.HEALTHY
        self._client.ask(
            lambda request_id: ReleaseLease(
                request_id=request_id,
                principal=self._name,
                lease_id=LeaseId(lease.lease_id),
                epoch=lease.epoch,
                outcome=outcome,
            )
        )
