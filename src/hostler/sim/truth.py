"""The truth about processes: what really runs, whoever believes what.

Machines tell it of every process that begins or ends. It is no part of Hostler, sees through every
partition, and stops the history at the instant at which one thing has two holders.
"""

from __future__ import annotations

import msgspec

from hostler.sim.world import Violation, World


class JobProcess(msgspec.Struct, frozen=True):
    """One running copy of a replica."""

    replica_id: str
    allocation_id: str
    epoch: int
    machine_id: str


class LeasedProcess(msgspec.Struct, frozen=True):
    """One command that runs under a lease."""

    lease_id: str
    epoch: int
    request_id: str
    machine_id: str


class Truth:
    """Everything that runs, anywhere.

    Attributes:
        jobs_by_replica: The running copies of each replica that has any: one, or while it is moved
            two, where its bundle allows that.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.jobs_by_replica: dict[str, dict[str, JobProcess]] = {}
        self.overlapping_bundles: set[str] = set()
        """Those that have said, always, that two copies of one replica do no harm."""
        self.slot_count_by_machine: dict[str, int] = {}
        self._leased_by_machine: dict[str, dict[str, LeasedProcess]] = {}
        self._epoch_max_by_machine: dict[str, int] = {}
        self.job_start_count = 0
        self.leased_start_count = 0

    def job_began(self, process: JobProcess) -> None:
        """Note that a replica runs.

        Raises:
            Violation: More copies of it run than may.
        """
        others = self.jobs_by_replica.setdefault(process.replica_id, {})
        bundle = process.replica_id.partition("/")[0]
        if len(others) >= (2 if bundle in self.overlapping_bundles else 1):
            other = next(iter(others.values()))
            raise Violation(
                "two_copies",
                "more copies of a replica run at one instant than may",
                replica=process.replica_id,
                first=f"{other.allocation_id}/{other.epoch} on {other.machine_id}",
                second=f"{process.allocation_id}/{process.epoch} on {process.machine_id}",
            )
        others[process.allocation_id] = process
        self.job_start_count += 1
        self._world.log(
            f"truth {process.replica_id} runs as {process.allocation_id} on {process.machine_id}"
        )

    def job_ended(self, process: JobProcess) -> None:
        """Note that it does not run any more."""
        copies = self.jobs_by_replica[process.replica_id]
        del copies[process.allocation_id]
        if not copies:
            del self.jobs_by_replica[process.replica_id]
        self._world.log(f"truth {process.replica_id} ended as {process.allocation_id}")

    def leased_began(self, process: LeasedProcess) -> None:
        """Note that a command runs under a lease.

        Raises:
            Violation: More leases run something on the machine than it has slots, or an older
                holder of a single slot runs on beside a newer one.
        """
        here = self._leased_by_machine.setdefault(process.machine_id, {})
        here[process.request_id] = process
        self.leased_start_count += 1
        self._world.log(
            f"truth {process.request_id} runs under {process.lease_id}/{process.epoch}"
            f" on {process.machine_id}"
        )
        holders = sorted({(each.epoch, each.lease_id) for each in here.values()})
        slot_count = self.slot_count_by_machine.get(process.machine_id, 1)
        if len(holders) > slot_count:
            raise Violation(
                "too_many_holders",
                "more leases run something on a machine than it has slots",
                machine=process.machine_id,
                slots=slot_count,
                holders=" ".join(f"{lease_id}/{epoch}" for epoch, lease_id in holders),
            )
        newest = self._epoch_max_by_machine.get(process.machine_id, 0)
        if slot_count == 1 and process.epoch < newest:
            raise Violation(
                "stale_holder",
                "an older lease begins something after a newer one did",
                machine=process.machine_id,
                lease=f"{process.lease_id}/{process.epoch}",
                newest_epoch=newest,
            )
        self._epoch_max_by_machine[process.machine_id] = max(newest, process.epoch)

    def leased_ended(self, process: LeasedProcess) -> None:
        """Note that the command does not run any more."""
        del self._leased_by_machine[process.machine_id][process.request_id]
        self._world.log(f"truth {process.request_id} ended under {process.lease_id}")

    def leased(self) -> list[LeasedProcess]:
        """Return every command that runs under a lease."""
        return [each for here in self._leased_by_machine.values() for each in here.values()]
