"""How leases end: by whom, once, by the clock, and what becomes of the node."""

import pytest

from hostler.core import limits
from hostler.core.inputs import HeartbeatLease, ReleaseLease, ServerStarted
from hostler.core.replies import Accepted, Refused
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase, RetireReason
from hostler.testing.builders import a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.conftest import NewRental
from tests.core.leasing.rental import a_launched_node

OWN = (a_fixed_tier(),)
CLOUD = (an_elastic_tier(node_count_max=1),)
UNFIT = [LeaseOutcome.POISON, LeaseOutcome.REVOKED]


def test_each_grant_on_a_node_has_a_higher_epoch(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, slot_count=2), a_node(slot_count=2))
    epochs = []
    for _ in range(3):
        first, second = world.acquire(), world.acquire()
        epochs += [first.epoch, second.epoch]
        world.release(first)
        world.release(second)
    assert epochs == [1, 2, 3, 4, 5, 6]


def test_another_principal_may_neither_renew_nor_release(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire(principal="ann")
    for answer in (
        world.heartbeat(lease, principal="bob"),
        world.release(lease, principal="bob"),
    ):
        assert isinstance(answer, Refused)
        assert answer.code == "not_holder"
    assert world.now(lease) == lease


def test_an_operator_may_renew_release_and_revoke(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire(principal="ann")
    as_operator = {"principal": "bob", "is_operator": True}
    assert isinstance(world.heartbeat(lease, **as_operator), Accepted)
    world.release(lease, LeaseOutcome.REVOKED, detail="too long", **as_operator)
    assert (world.now(lease).outcome, world.now(lease).outcome_detail) == (
        LeaseOutcome.REVOKED,
        "too long",
    )


@pytest.mark.parametrize(
    "outcome", [LeaseOutcome.EXPIRED, LeaseOutcome.NODE_LOST, LeaseOutcome.REVOKED]
)
def test_a_holder_says_healthy_or_poison(rental: NewRental, outcome: LeaseOutcome) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire()
    answer = world.release(lease, outcome)
    assert isinstance(answer, Refused)
    assert answer.code == "outcome_not_allowed"
    assert world.now(lease).phase is LeasePhase.HELD


@pytest.mark.parametrize("kind", [HeartbeatLease, ReleaseLease])
def test_another_epoch_and_an_unknown_lease_are_refused(
    rental: NewRental, kind: type[HeartbeatLease | ReleaseLease]
) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire()
    stale = world.ask(kind, lease_id=lease.lease_id, epoch=lease.epoch + 1)
    unknown = world.ask(kind, lease_id="l-404404", epoch=1)
    assert (stale.code, stale.is_conflict) == ("epoch_stale", True)  # type: ignore[union-attr]  # refused
    assert (unknown.code, unknown.is_missing) == ("lease_not_found", True)  # type: ignore[union-attr]  # refused
    assert world.now(lease) == lease


def test_a_waiting_lease_cannot_be_renewed(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN))
    answer = world.heartbeat(world.acquire())
    assert isinstance(answer, Refused)
    assert answer.code == "lease_not_held"


def test_without_heartbeats_a_lease_expires_at_its_instant(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, lease_ms=5_000), a_node())
    lease = world.acquire(lease_ms=2_000)
    world.advance(1_999)
    assert world.now(lease).phase is LeasePhase.HELD
    world.advance(9_000)
    ended = world.now(lease)
    assert (ended.outcome, ended.phase_since_at_ms) == (LeaseOutcome.EXPIRED, 2_000)
    assert "no heartbeat for 2s" in ended.outcome_detail


def test_heartbeats_do_not_stretch_the_longest_hold(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, lease_ms=5_000, lease_ms_max=8_000), a_node())
    lease = world.acquire()
    for at_ms in (4_000, 7_999):
        world.advance(at_ms)
        world.heartbeat(lease)
    world.advance(8_000)
    assert world.now(lease).outcome is LeaseOutcome.EXPIRED
    assert "lease_ms_max" in world.now(lease).outcome_detail


def test_silence_counts_only_while_the_server_listens(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, lease_ms=5_000, lease_ms_max=60_000), a_node())
    lease = world.acquire()
    world.run(ServerStarted(), at_ms=50_000)
    assert world.now(lease).phase is LeasePhase.HELD
    assert world.now(lease).expires_at_ms == 55_000
    world.advance(55_000)
    assert world.now(lease).outcome is LeaseOutcome.EXPIRED


@pytest.mark.parametrize("kind", [HeartbeatLease, ReleaseLease])
def test_what_comes_after_the_expiry_does_not_undo_it(
    rental: NewRental, kind: type[HeartbeatLease | ReleaseLease]
) -> None:
    """A late step absorbs the request before it looks at the clock; the lease has ended all the
    same, and nobody vouches for the node."""
    world = rental(a_pool(tiers=OWN, lease_ms=5_000), a_node())
    lease = world.acquire()
    late = kind(request_id="late", principal="tester", lease_id=lease.lease_id, epoch=lease.epoch)
    world.run(late, at_ms=5_000)
    assert world.now(lease).outcome is LeaseOutcome.EXPIRED


@pytest.mark.parametrize("outcome", UNFIT)
def test_an_unfit_node_of_ours_goes(rental: NewRental, outcome: LeaseOutcome) -> None:
    world = rental(a_pool(tiers=CLOUD), a_launched_node())
    lease = world.acquire()
    world.release(lease, outcome, is_operator=True)
    assert world.node_of(lease).retire_reason is RetireReason.POISONED
    assert world.acquire().phase is LeasePhase.WAITING


@pytest.mark.parametrize("outcome", UNFIT)
def test_an_unfit_node_that_joined_waits_for_a_person(
    rental: NewRental, outcome: LeaseOutcome
) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire()
    world.release(lease, outcome, is_operator=True)
    cordon = world.node_of(lease).cordon
    assert cordon is not None
    assert (cordon.by, cordon.reason) == ("hostler", "poisoned")
    assert world.node_of(lease).phase is NodePhase.READY
    assert world.acquire().phase is LeasePhase.WAITING


def test_a_poisoned_node_keeps_its_other_leases(rental: NewRental) -> None:
    world = rental(a_pool(tiers=CLOUD, slot_count=2), a_launched_node(slot_count=2))
    bad, good = world.acquire(), world.acquire()
    world.poison(bad)
    assert world.now(good).phase is LeasePhase.HELD
    assert not world.commands("stop_machine")
    world.release(good)
    assert world.node_of(good).lease_count == 0


def test_a_node_that_has_served_its_number_is_replaced(rental: NewRental) -> None:
    world = rental(a_pool(tiers=CLOUD, use_count_max=2), a_launched_node())
    world.release(world.acquire())
    last = world.acquire()
    assert world.node_of(last).retire_reason is RetireReason.USED_UP
    assert world.now(last).phase is LeasePhase.HELD
    world.release(last)
    assert world.acquire().phase is LeasePhase.WAITING


def test_a_settled_lease_is_cleared_away_on_its_node(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire()
    world.release(lease)
    assert world.outbox == {f"{lease.lease_id}/end/{lease.epoch}": "end_lease"}
    world.succeed(next(iter(world.outbox)))
    assert not world.outbox


def test_the_next_in_line_does_not_wait_for_the_clearing(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    first = world.acquire()
    waiting = world.acquire()
    world.release(first)
    assert world.now(waiting).phase is LeasePhase.HELD
    assert world.commands("end_lease") == [f"{first.lease_id}/end/{first.epoch}"]


def test_every_turn_of_a_lease_is_told(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    first = world.acquire()
    second = world.acquire()
    world.release(first)
    world.release(second)
    gone = world.acquire()
    world.acquire(timeout_ms=0)
    assert gone.phase is LeasePhase.HELD
    assert [kind for kind in world.events() if kind.startswith("lease_")] == [
        "lease_granted",
        "lease_waiting",
        "lease_settled",
        "lease_granted",
        "lease_settled",
        "lease_granted",
        "lease_refused",
    ]


def test_history_is_bounded_by_number_too(
    rental: NewRental, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LEASES_OVER_MAX", 2)
    world = rental(a_pool(tiers=OWN), a_node())
    leases = [world.acquire() for _ in range(1)]
    for _ in range(4):
        world.release(leases[-1])
        leases.append(world.acquire())
    assert [lease.lease_id in world.fleet.leases for lease in leases] == [False] * 2 + [True] * 3
