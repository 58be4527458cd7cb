"""Histories: valid inputs in any order, drawn from what the fleet is at the moment."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from hostler.base.ids import AllocationId, BundleId, CommandId, LeaseId, MachineId, NodeId
from hostler.core import inputs as given
from hostler.core.allocation_fact import AllocationFact
from hostler.core.fleet import Fleet
from hostler.core.fleet_settings import FleetSettings
from hostler.core.job_inputs import StartJob, StopJob
from hostler.core.machine_fact import MachineFact
from hostler.core.services import NodeService
from hostler.model import Budget, OutboxEntry, Pool, Settings
from hostler.model.allocation import EndCause, Ended
from hostler.model.bundle import Fallback, OnFailure, RolloutPolicy
from hostler.model.calendar import Offset, TimeZone, Weekday, Window
from hostler.model.command import CheckMachine, LaunchMachine, ListMachines
from hostler.model.consolidation import ConsolidationPolicy
from hostler.model.disruption import DisruptionBudget
from hostler.model.launch import Disconnect, JobConfig, Launch
from hostler.model.lease import LeaseOutcome, Share
from hostler.model.maintenance import MaintenancePlan
from hostler.model.node import NodePhase, NoticeKind
from hostler.model.pool import Band, Reuse, Rollout, SizeWindow, SpareTarget
from hostler.model.ready import ReadyCheck
from hostler.model.rollout import Steering
from hostler.model.selector import read_selector
from hostler.model.service import ServiceLife, ServiceSpec
from hostler.model.settings import BronzeVictims, Preemption, ProviderLimits
from hostler.model.shape import Capability, CapabilityRequest, Requirement, Shape
from hostler.model.spend import Period, SpendCap
from hostler.model.timetable import Missed, Timetable
from hostler.testing.builders import LARGE, SMALL, a_fixed_tier, a_job, an_elastic_tier

T = TypeVar("T")

CODES = (
    "request_invalid",
    "capacity_unavailable",
    "quota_exceeded",
    "credentials_rejected",
    "throttled",
    "outcome_unknown",
    "unreachable",
    "refused",
    "defect",
)
WANTED = (
    Requirement(),
    Requirement(capacity=8),
    Requirement(capabilities=(CapabilityRequest(name="gpu"),)),
    Requirement(node_labels=read_selector("rack")),
)
SHAPES = (SMALL, LARGE, Shape(capacity=6), Shape())
SERVICES = (
    ("clock", ()),
    ("router", (CapabilityRequest(name="clock"),)),
)
"""Node services: what each provides, which is called as it is, and what it needs."""
BUDGET = DisruptionBudget(name="careful", unavailable_count_max=1)
UTC_ZONE = TimeZone(
    name="UTC", offsets=(Offset(from_at_ms=0, offset_ms=0),), known_until_at_ms=1 << 53
)
SAVING = ConsolidationPolicy(
    used_percent_max=90, settle_ms=1_000, move_count_max=4, window_ms=60_000, spacing_ms=20_000
)
READY = ReadyCheck(argv=("ready",), told="ready", deadline_ms=20_000, success_count=2)
SPARES = (SpareTarget(count=1, band=Band.GOLD), SpareTarget(count=1, band=Band.SILVER))
POOLS = ("p", "q")
BUNDLES = ("a", "b", "c", "service.clock")
ZONE = TimeZone(
    name="Nowhere/Ever",
    offsets=(
        Offset(from_at_ms=0, offset_ms=0),
        Offset(from_at_ms=900_000, offset_ms=3_600_000),
        Offset(from_at_ms=5_000_000, offset_ms=0),
    ),
    known_until_at_ms=10**12,
)
"""A zone that changes its clock while a history lasts."""
WINDOW = SizeWindow(
    name="early",
    window=Window(time_zone=ZONE.name, days=tuple(Weekday), from_ms=600_000, to_ms=4_000_000),
    warm_count=2,
    node_count_max=4,
)
PAUSES_MS = (1, 1, 500, 500, 5_000, 5_000, 20_000, 61_000, 130_000, 400_000, 1_000_000)


class History:
    """Draws one input after another."""

    def __init__(self, fleet: Fleet, below: Callable[[int], int]) -> None:
        """Begin.

        Args:
            fleet: What is looked at to draw inputs that could come in.
            below: Draws a number from zero up to and without a bound.
        """
        self.fleet = fleet
        self._below = below
        self._asked = 0
        self._incarnation = 0

    def one_of(self, options: Sequence[T]) -> T:
        """Draw one of several."""
        return options[self._below(len(options))]

    def chance(self) -> bool:
        """Draw yes or no."""
        return self._below(2) == 1

    def pause_ms(self) -> int:
        """Draw how long nothing happens."""
        return self.one_of(PAUSES_MS)

    def batch(self) -> list[given.AnyInput]:
        """Draw a few inputs that come in together."""
        if not len(self.fleet.pools):
            return [self._configuration()]
        makers = (
            *(self._settlement for _ in range(8)),
            *(self._hello for _ in range(5)),
            *(self._lease_request for _ in range(5)),
            *(self._report for _ in range(4)),
            *(self._bundle for _ in range(2)),
            *(self._silence for _ in range(2)),
            *(self._node_request for _ in range(2)),
            *(self._join for _ in range(2)),
            self._late,
            self._notice,
            self._label,
            self._process,
            self._configuration,
        )
        count = 1 + self._below(4)
        return [self.one_of(makers)() for _ in range(count)]

    # -- drawing from what is there ----------------------------------------------------------

    def _who(self) -> dict[str, Any]:
        self._asked += 1
        return {"request_id": f"r{self._asked}", "principal": self.one_of(("ann", "bob"))}

    def _node_id(self) -> NodeId:
        if self._below(10) == 9:
            return NodeId("n-999999")
        alive = [n.node_id for n in self.fleet.nodes.in_order() if n.phase is not NodePhase.RETIRED]
        return self.one_of(alive or [NodeId("n-000001")])

    def _lease_id(self) -> LeaseId:
        return self.one_of([*map(LeaseId, sorted(self.fleet.leases.rows)), LeaseId("l-999999")])

    def _facts(self, node_id: str) -> list[AllocationFact]:
        keys = self.fleet.index.allocations_by_node.keys(node_id)
        kept = [key for key in keys if self.chance()]
        return [self._fact(key) for key in [*kept, *(["a-999999"] if self.chance() else [])]]

    def _fact(self, key: str) -> AllocationFact:
        known = self.fleet.allocations.get(key)
        phase = self.one_of(("starting", "running", "ready", "unready", "stopping", "ended"))
        causes = [EndCause.EXITED, EndCause.START_FAILED, EndCause.FENCED, EndCause.STOPPED]
        ended = Ended(cause=self.one_of(causes)) if phase == "ended" else None
        epoch = (1 if known is None else known.epoch) - int(self._below(10) == 9)
        written = self.one_of((0, 0, 1, 2, 3))
        return AllocationFact(
            allocation_id=AllocationId(key),
            epoch=epoch,
            phase=phase,
            config_written=written,
            config_applied=self.one_of((0, written)),
            ended=ended,
        )

    # -- inputs ------------------------------------------------------------------------------

    def _configuration(self) -> given.AnyInput:
        settings = Settings(fleet_id="f")
        names = FleetSettings.__struct_fields__
        kept = {name: getattr(settings, name) for name in names}
        if self.chance():
            kept["lost_node_count_max"] = 1
        kept["ageing_ms"] = self.one_of((0, 60_000, 3_600_000))
        kept["preemption"] = Preemption(
            window_ms=self.one_of((30_000, 600_000)),
            after_ms=self.one_of((0, 0, 10_000)),
            victim_per_bundle_count_max=self.one_of((1, 10)),
            bronze_victims=self.one_of(list(BronzeVictims)),
        )
        kept["maintenance"] = self.one_of(((), (self._maintenance(),)))
        kept["disruption_budgets"] = self.one_of(((), (BUDGET,)))
        pools = tuple(self._pool(name) for name in POOLS if self._below(5))
        if self.chance():
            limited = ProviderLimits(provider="fake", launch_count_max=2, launches_per_minute_max=6)
            kept["providers"] = (limited,)
        return given.ApplyConfiguration(
            fleet_id="f",
            settings=FleetSettings(**kept),
            pools=pools,
            services=tuple(self._services([pool.name for pool in pools])),
            time_zones=(ZONE, UTC_ZONE),
            budgets=self._budgets(pools),
            **self._who(),
        )

    def _maintenance(self) -> MaintenancePlan:
        begin_ms = self.fleet.now_ms + self.one_of((0, 30_000, 400_000))
        timetable = self.one_of(
            (
                Timetable(time_zone="UTC", from_at_ms=begin_ms, to_at_ms=begin_ms + 60_000),
                Timetable(time_zone=ZONE.name, windows=(WINDOW.window,)),
            )
        )
        return MaintenancePlan(
            name=self.one_of(("disks", "kernel")),
            pools=self.one_of(((), ("p",))),
            node_ids=self.one_of(((), (self._node_id(),))),
            labels={} if self.chance() else {"rack": "a"},
            timetable=timetable,
            lead_ms=self.one_of((0, 10_000, 300_000)),
            is_forced=self.chance(),
        )

    def _services(self, pools: list[str]) -> Iterator[NodeService]:
        """Draw node services, of which the second needs the first."""
        for name, needs in SERVICES:
            if pools and self.chance():
                job = a_job(
                    band=Band.GOLD,
                    launch=Launch(argv=(name, self.one_of(("", "-v2")))),
                    requirement=Requirement(capacity=1, capabilities=needs),
                )
                spec = ServiceSpec(
                    life=self.one_of(list(ServiceLife)),
                    pools=tuple(pools[: 1 + self._below(2)]),
                    tiers=self.one_of(((), ("p/own",) if "p" in pools else ())),
                    provides=(Capability(name=name, count=2),),
                    linger_ms=self.one_of((0, 60_000)),
                )
                yield NodeService(name=name, job=job, spec=spec)

    def _budgets(self, pools: Sequence[Pool]) -> tuple[Budget, ...]:
        """Draw none, or budgets that some histories run into and others do not."""
        limit = self.one_of((10**5, 10**6, 10**12))
        everything = Budget(
            name="all",
            caps=(
                SpendCap(period=Period.DAILY, cost_micros=limit),
                SpendCap(period=Period.LIFETIME, node_ms=limit * 100, held_ms=limit * 100),
            ),
            node_count_max=self.one_of((None, 2)),
        )
        of_key = Budget(
            name="key",
            pool=pools[0].name if pools else "",
            fairness_key="k",
            caps=(SpendCap(period=Period.DAILY, held_ms=limit),),
            lease_count_max=self.one_of((None, 1)),
        )
        return self.one_of(((), (), (), (everything,), (of_key,), (everything, of_key)))

    def _pool(self, name: str) -> Pool:
        elastic = an_elastic_tier(
            node_count_max=self.one_of((1, 2, 5)),
            options_json=self.one_of(("{}", "{}", '{"image":"new"}')),
            has_agents=self.one_of((True, True, True, False)),
            labels=self.one_of(({}, {}, {"rack": "a"})),
        )
        fixed = a_fixed_tier(
            provider=self.one_of(("", "local")), price_microusd_per_hour=self.one_of((0, 70_000))
        )
        return Pool(
            name=name,
            tiers=self.one_of(((fixed, elastic), (elastic,), (elastic, fixed))),
            warm_count=self.one_of((0, 1, 2)),
            reuse=self.one_of(list(Reuse)),
            spares=self.one_of(((), (), (SpareTarget(count=1),), SPARES)),
            slot_count=self.one_of((1, 2)),
            idle_ms=self.one_of((1_000, 300_000)),
            lease_ms_max=self.one_of((None, 100_000)),
            lease_per_key_max=self.one_of((None, 1)),
            line_step_ms=self.one_of((0, 60_000)),
            clean_up=self.one_of(((), ("scrub",))),
            ready=self.one_of((None, None, READY)),
            retire_notice_ms=self.one_of((0, 600_000)),
            retire_extension_ms_max=self.one_of((0, 10_000)),
            use_count_max=self.one_of((None, 1, 3)),
            waiting_count_max=3,
            launch_count_max=self.one_of((1, 5)),
            node_count_min=self.one_of((0, 0, 1)),
            node_count_max=self.one_of((None, 3)),
            age_ms_max=self.one_of((None, 500_000)),
            boot_failure_count_max=self.one_of((1, 5)),
            rollout=self.one_of((Rollout(), Rollout(surge_count_max=0, unavailable_count_max=1))),
            windows=self.one_of(((), (WINDOW,))),
            consolidation=self.one_of((None, SAVING, SAVING)),
        )

    def _bundle(self) -> given.AnyInput:
        name = BundleId(self.one_of(BUNDLES))
        match self._below(9):
            case 0:
                return given.DeleteBundle(bundle_id=name, **self._who())
            case 1:
                return StartJob(bundle_id=name, job="main", **self._who())
            case 2:
                return StopJob(bundle_id=name, job="main", **self._who())
            case 3:
                return given.ResetBundle(bundle_id=name, **self._who())
            case 4:
                steering = self.one_of(list(Steering))
                return given.SteerRollout(bundle_id=name, steering=steering, **self._who())
            case _:
                disconnect = self.one_of((Disconnect.STOP, Disconnect.KEEP))
                job = a_job(
                    band=self.one_of(list(Band)),
                    launch=Launch(argv=self.one_of((("run",), ("new",))), disconnect=disconnect),
                    can_overlap=self.chance(),
                    config=self.one_of((None, JobConfig(), JobConfig(files={"a": "b"}))),
                    requirement=Requirement(
                        capacity=self.one_of((1, 4, 50)),
                        capabilities=self.one_of(((), (), SERVICES[1][1])),
                    ),
                )
                return given.SubmitBundle(
                    bundle_id=name,
                    pool="p",
                    jobs=(job,),
                    replica_count=self.one_of((1, 2)),
                    timetable=self._timetable(),
                    time_zones=(UTC_ZONE,),
                    rollout=RolloutPolicy(
                        max_parallel=self.one_of((1, 2)),
                        healthy_after_ms=self.one_of((0, 10_000)),
                        progress_within_ms=self.one_of((1_000, 600_000)),
                        on_failure=self.one_of(list(OnFailure)),
                    ),
                    fallback_pools=("q",) if self.chance() else (),
                    fallback=self.one_of(list(Fallback)),
                    is_gang=self._below(4) == 3,
                    is_backup_promoted=self.chance(),
                    **self._who(),
                )

    def _timetable(self) -> Timetable | None:
        now_ms = self.fleet.now_ms
        from_at_ms = self.one_of((None, now_ms, now_ms + 20_000, now_ms + 400_000))
        to_at_ms = self.one_of((None, now_ms, now_ms + 30_000, now_ms + 500_000))
        hours = Window(time_zone="UTC", days=tuple(Weekday), from_ms=0, to_ms=1_800_000)
        if from_at_ms is None and to_at_ms is None:
            return None
        return Timetable(
            time_zone="UTC",
            from_at_ms=from_at_ms,
            to_at_ms=to_at_ms,
            windows=(hours,) if self.chance() else (),
            missed=self.one_of(list(Missed)),
            grace_ms=self.one_of((0, 10_000)),
            is_deleted_after=self.chance(),
        )

    def _node_request(self) -> given.AnyInput:
        node_id = self._node_id()
        match self._below(4):
            case 0:
                return given.CordonNode(node_id=node_id, **self._who())
            case 1:
                if self.chance():
                    return given.RetryGrowth(pool=self.one_of(POOLS), **self._who())
                if self.chance():
                    return given.ConfirmLoss(node_id=node_id, **self._who())
                return given.UncordonNode(node_id=node_id, **self._who())
            case _:
                deadline_ms = self.one_of((0, 30_000))
                return given.DrainNode(
                    node_id=node_id,
                    deadline_ms=deadline_ms,
                    is_forced=self.chance(),
                    then_retire=self.chance(),
                    **self._who(),
                )

    def _lease_request(self) -> given.AnyInput:
        lease = self.fleet.leases.get(self._lease_id())
        choice = self._below(5)
        if lease is None or choice > 1:
            return given.AcquireLease(
                pool=self.one_of(POOLS),
                requirement=self.one_of(WANTED),
                priority=self.one_of((0, 0, 1)),
                timeout_ms=self.one_of((0, 10_000, 300_000)),
                fairness_key=self.one_of(("", "k")),
                idempotency_key=self.one_of(("", "i")),
                **self._lease_wishes(),
                **self._who(),
            )
        who = {**self._who(), "principal": lease.holder}
        if choice and self._below(4) == 3:
            return given.ExtendLease(
                lease_id=lease.lease_id, epoch=lease.epoch, by_ms=self.one_of((1, 9_999)), **who
            )
        if choice:
            return given.HeartbeatLease(lease_id=lease.lease_id, epoch=lease.epoch, **who)
        outcome = self.one_of((LeaseOutcome.HEALTHY, LeaseOutcome.HEALTHY, LeaseOutcome.POISON))
        return given.ReleaseLease(lease_id=lease.lease_id, outcome=outcome, **who)

    def _lease_wishes(self) -> dict[str, Any]:
        """Draw what a request may say beside the usual."""
        match self._below(6):
            case 0:
                return {"affinity_node_id": self._node_id(), "affinity_wait_ms": 5_000}
            case 1:
                return {"affinity_lease_id": self._lease_id(), "is_affinity_required": True}
            case 2:
                return {"excluded_node_ids": (self._node_id(),), "ack_ms": 2_000}
            case 3:
                return {"share": self.one_of(list(Share)), "ack_ms": 2_000}
            case _:
                return {}

    def _join(self) -> given.AnyInput:
        if self.chance():
            return given.JoinAgent(node_id=self._node_id(), **self._who())
        return given.JoinAgent(
            pool=self.one_of(POOLS),
            tier=self.one_of(("own", "own", "cloud")),
            machine_id=self.one_of((None, *(MachineId(f"box-{n}") for n in range(3)))),
            **self._who(),
        )

    def _hello(self) -> given.AnyInput:
        waiting = self.fleet.index.nodes_by_phase.keys(NodePhase.STARTING.value)
        node_id = self.one_of([*map(NodeId, waiting), self._node_id()])
        self._incarnation += self._below(2)
        return given.AgentSaidHello(
            node_id=node_id,
            incarnation=max(1, self._incarnation),
            shape=self.one_of((SMALL, SMALL, SMALL, *SHAPES, None)),
            allocations=tuple(self._facts(node_id)),
        )

    def _report(self) -> given.AnyInput:
        keys = [key for key, row in sorted(self.fleet.allocations.rows.items()) if row.is_live]
        if not keys or self._below(10) == 9:
            return given.InventoryReported(node_id=self._node_id(), shape=self.one_of(SHAPES))
        key = self.one_of(keys)
        return given.AllocationReported(
            node_id=self.fleet.allocations[key].node_id, fact=self._fact(key)
        )

    def _label(self) -> given.AnyInput:
        labels = self.one_of(({"rack": "a"}, {"rack": ""}))
        return given.LabelNode(node_id=self._node_id(), labels=labels, **self._who())

    def _notice(self) -> given.AnyInput:
        return given.NoticeReported(
            node_id=self._node_id(),
            kind=self.one_of(list(NoticeKind)),
            left_ms=self.one_of((0, 5_000, 120_000)),
        )

    def _silence(self) -> given.AnyInput:
        node_id = self._node_id()
        if self.chance():
            return given.ContactResumed(node_id=node_id)
        since_at_ms = self.fleet.now_ms - self.one_of((0, 1_000, 50_000))
        return given.SilenceNoticed(
            node_id=node_id, since_at_ms=max(0, since_at_ms), is_link_down=self.chance()
        )

    def _process(self) -> given.AnyInput:
        options: list[given.AnyInput] = [
            given.ServerStarted(),
            given.AlarmRang(),
            given.FullScan(),
        ]
        return self.one_of(options)

    # -- outcomes ----------------------------------------------------------------------------

    def _settlement(self) -> given.AnyInput:
        keys = sorted(self.fleet.commands.rows)
        if not keys:
            return given.AlarmRang()
        entry = self.fleet.commands[self.one_of(keys)]
        if self._below(4) == 3:
            failed = given.CommandFailed(code=self.one_of(CODES))
            return given.CommandSettled(command_id=entry.command_id, outcome=failed)
        machines = tuple(self._machines(entry))
        return given.CommandSettled(
            command_id=entry.command_id, outcome=given.Succeeded(machines=machines)
        )

    def _machines(self, entry: OutboxEntry) -> list[MachineFact]:
        match entry.command:
            case LaunchMachine(node_id=node_id):
                machine_id = MachineId(f"m-{node_id}")
                return [MachineFact(machine_id=machine_id, node_id=node_id)]
            case CheckMachine(machine_id=machine_id, node_id=node_id) if self.chance():
                return [MachineFact(machine_id=machine_id, node_id=node_id)]
            case ListMachines(provider=provider):
                return self._listed(provider)
            case _:
                return []

    def _listed(self, provider: str) -> list[MachineFact]:
        nodes = [n for n in self.fleet.nodes.in_order() if n.provider == provider]
        found = [
            MachineFact(
                machine_id=node.machine_id or MachineId(f"m-{node.node_id}"),
                node_id=node.node_id,
                created_at_ms=node.created_at_ms,
            )
            for node in nodes
            if self.chance()
        ]
        if self.chance():
            name = self.one_of(("m-stray-1", "m-stray-2"))
            found.append(MachineFact(machine_id=MachineId(name), pool="p", tier="cloud"))
        return found

    def _late(self) -> given.AnyInput:
        node_id = self._node_id()
        fact = MachineFact(
            machine_id=MachineId(f"m-{node_id}"), node_id=node_id, pool="p", tier="cloud"
        )
        return given.CommandSettled(
            command_id=CommandId(f"{node_id}/launch/1"),
            outcome=given.Succeeded(machines=(fact,)),
        )
