"""spec/leasing.md 6.10 and 6.11: drivers, and runs under leases, as far as the core has a part.

6.10 is the providers': `tests/providers` (SC-195 and SC-255 are the conformance suite, SC-197 to
SC-199, SC-205, SC-206 and SC-266 in `test_ssh.py` and `test_docker.py`, SC-200 and SC-201 in
`test_registry.py`, SC-195 in `test_fake.py`). SC-196 does not apply: machines of `local` have an
agent and a folder each, and no address. SC-202 is `tests/api/test_reload.py`; SC-256 and SC-265,
a launch of unknown outcome, are `tests/core/nodes/test_launching.py` and the kills of
`tests/engine`. Of 6.11, what is about tunnels and endpoints (SC-212 to SC-215, SC-219 to
SC-222, SC-226, SC-258 to SC-260) and about dispatch of a tracker's issues (SC-210, SC-229) has no
counterpart. SC-227, consent to share a node, is `test_sharing.py`; SC-228, which ends are poison,
is `hostler run`'s (`tests/cli`).
"""

from hostler.core.replies import Accepted, Refused
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.reason import Reason
from hostler.testing.builders import a_fixed_tier, a_node, a_pool
from tests.core.leasing.conftest import NewRental

OWN = (a_fixed_tier(),)


def test_sc_211_pass_through(rental: NewRental) -> None:
    """Each refusal comes back as it is, and nothing is held for it."""
    world = rental(a_pool(tiers=OWN, waiting_count_max=0), a_node())
    held = world.acquire()
    at_once = world.acquire(timeout_ms=0)
    assert (at_once.phase, at_once.reason) == (LeasePhase.REFUSED, Reason.TIMED_OUT)
    assert world.refused(timeout_ms=9_000).code == Reason.OVERLOADED.value
    world.configure()
    assert world.refused().code == Reason.POOL_DISABLED.value
    assert world.held() == [held.lease_id]


def test_sc_216_collision(rental: NewRental) -> None:
    """Given a run that is live, when it asks again under its key, then it has the lease that it
    has; after release a new key gives it another."""
    world = rental(a_pool(tiers=OWN), a_node("n-1"), a_node("n-2"))
    first = world.acquire(idempotency_key="issue-1#0")
    assert world.acquire(idempotency_key="issue-1#0").lease_id == first.lease_id
    assert len(world.held()) == 1
    world.release(first)
    assert world.acquire(idempotency_key="issue-1#0/2").lease_id != first.lease_id


def test_sc_223_liveness(rental: NewRental) -> None:
    """A run is live only under its exact lease and number, and no more after it settles."""
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire()
    assert isinstance(world.heartbeat(lease), Accepted)
    assert isinstance(world.heartbeat(lease, epoch=lease.epoch + 1), Refused)
    world.release(lease)
    assert isinstance(world.heartbeat(lease), Refused)


def test_sc_224_two_tenants(rental: NewRental) -> None:
    """Given slots 2, two tenants share one worker with numbers of their own; poison of one ends
    only its own."""
    world = rental(a_pool(tiers=OWN, slot_count=2), a_node(slot_count=2))
    one, other = world.acquire(fairness_key="a"), world.acquire(fairness_key="b")
    assert one.node_id == other.node_id
    assert one.epoch != other.epoch
    world.poison(one)
    assert world.now(one).outcome is LeaseOutcome.POISON
    assert world.now(other).phase is LeasePhase.HELD


def test_sc_230_late_bind(rental: NewRental) -> None:
    """Given a request that is cancelled and granted in one instant, then whichever came first
    counts, and nothing stays held."""
    world = rental(a_pool(tiers=OWN), a_node())
    first = world.acquire()
    waiting = world.acquire(timeout_ms=60_000)
    world.release(first)
    world.release(waiting)
    assert world.now(waiting).phase is LeasePhase.SETTLED
    assert world.held() == []
