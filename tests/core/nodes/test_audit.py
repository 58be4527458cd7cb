"""The audit: who changed what, from where; what is not in it; and that it stays within bounds."""

from typing import Any

from hostler.base.ids import LeaseId, NodeId
from hostler.core.asking import AccessNoted
from hostler.core.inputs import (
    AcquireLease,
    CordonNode,
    CreateToken,
    DrainNode,
    HeartbeatLease,
    ReleaseLease,
    SubmitBundle,
    UncordonNode,
)
from hostler.core.replies import Accepted
from hostler.model import AuditEntry
from hostler.model.audit import AuditOutcome, Origin
from hostler.model.lease import LeaseOutcome
from hostler.model.settings import Retention
from hostler.model.token import Role
from hostler.testing.builders import a_job
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, an_own_node, an_own_pool

ALICE: dict[str, Any] = {
    "principal": "alice",
    "origin": Origin(token_id="t-000007", remote="10.0.0.9"),
}
NODE = NodeId("n-900001")


def audit(world: Stable) -> list[AuditEntry]:
    return sorted(world.fleet.audit.rows.values(), key=lambda entry: entry.number)


def actions(world: Stable) -> list[str]:
    return [entry.action for entry in audit(world)]


def test_a_change_is_written_down_with_who_from_where_and_what(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.ask(CordonNode, node_id=NODE, reason="fan is loud", **ALICE)
    (entry,) = audit(world)
    assert (entry.principal, entry.origin) == ("alice", ALICE["origin"])
    assert (entry.action, entry.about) == ("cordon_node", {"node": NODE})
    assert entry.data == {"reason": "fan is loud"}
    assert entry.changed == (f"node/{NODE}",)
    assert entry.outcome is AuditOutcome.DONE
    assert (entry.at_ms, entry.event_seq) == (world.now_ms, 0)


def test_an_entry_is_part_of_the_step_that_made_the_change(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.ask(CordonNode, node_id=NODE, **ALICE)
    delta = next(delta for delta in world.deltas if delta.changes)
    assert {kind for kind, _ in delta.changes} >= {"node", "audit"}


def test_what_changed_nothing_or_was_refused_is_not_in_it(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.ask(UncordonNode, node_id=NODE)
    world.ask(CordonNode, node_id=NodeId("n-000099"))
    world.configure(an_own_pool())
    assert audit(world) == []


def test_a_request_sent_again_is_in_it_once(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    for _ in range(2):
        world.ask(DrainNode, node_id=NODE, deadline_ms=1_000, idempotency_key="k", **ALICE)
    assert actions(world) == ["drain_node"]
    # From another address it is the same request still.
    elsewhere = {**ALICE, "origin": Origin(remote="10.0.0.1")}
    again = world.ask(DrainNode, node_id=NODE, deadline_ms=1_000, idempotency_key="k", **elsewhere)
    assert again == Accepted(subject_id=NODE, is_repeat=True)


def test_a_secret_never_gets_in(stable: NewStable) -> None:
    world = stable(an_own_pool())
    answer = world.ask(CreateToken, name="ci", role=Role.LESSEE, sha256="a" * 64, **ALICE)
    (entry,) = audit(world)
    assert isinstance(answer, Accepted)
    assert entry.about == {"token": answer.subject_id}
    assert entry.data == {"name": "ci", "role": "lessee"}


def test_a_bundle_and_a_configuration_say_what_they_changed(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.configure(an_own_pool(warm_count=1))
    world.ask(SubmitBundle, bundle_id="b", pool="p", jobs=(a_job(),), **ALICE)
    configured, submitted = audit(world)
    assert configured.changed == ("pool/p",)
    assert submitted.about == {"bundle": "b", "pool": "p"}
    assert "bundle/b" in submitted.changed


def test_a_holder_with_its_own_lease_is_not_in_it_but_whoever_ends_it_is(
    stable: NewStable,
) -> None:
    world = stable(an_own_pool(), an_own_node())
    for holder in ("run-1", "run-2"):
        answer = world.ask(AcquireLease, pool="p", timeout_ms=1_000, principal=holder)
        assert isinstance(answer, Accepted)
        lease = world.fleet.leases[answer.subject_id]
        given: dict[str, Any] = {"lease_id": LeaseId(lease.lease_id), "epoch": lease.epoch}
        world.ask(HeartbeatLease, principal=holder, **given)
        if holder == "run-1":
            world.ask(ReleaseLease, principal=holder, **given)
    assert actions(world) == []
    world.ask(ReleaseLease, is_operator=True, outcome=LeaseOutcome.REVOKED, **given, **ALICE)
    (entry,) = audit(world)
    assert (entry.action, entry.about) == ("release_lease", {"lease": lease.lease_id})
    assert entry.data["outcome"] == "revoked"


def test_a_refusal_of_access_is_written_down_with_its_count(stable: NewStable) -> None:
    world = stable(an_own_pool())
    refusal = AccessNoted(
        principal="",
        origin=Origin(remote="10.0.0.66"),
        action="GET /v1/nodes",
        code="unauthorized",
        count=41,
    )
    world.run(refusal)
    (entry,) = audit(world)
    assert (entry.outcome, entry.code, entry.count) == (AuditOutcome.REFUSED, "unauthorized", 41)
    assert (entry.origin.remote, entry.action) == ("10.0.0.66", "GET /v1/nodes")


def test_what_changes_no_record_can_be_noted_too(stable: NewStable) -> None:
    world = stable(an_own_pool())
    world.run(AccessNoted(**ALICE, action="run_command", about={"lease": "l-000001"}))
    (entry,) = audit(world)
    assert (entry.outcome, entry.code) == (AuditOutcome.DONE, "")
    assert (entry.principal, entry.about) == ("alice", {"lease": "l-000001"})


def knock(world: Stable, count: int) -> None:
    for number in range(count):
        world.run(
            AccessNoted(principal="", origin=Origin(), action=f"GET /{number}", code="unauthorized")
        )


def test_the_oldest_go_first_and_whoever_knocks_pushes_nobody_out(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node(), retention=Retention(audit_count_max=20))
    for _ in range(15):
        world.ask(CordonNode, node_id=NODE, **ALICE)
        world.ask(UncordonNode, node_id=NODE, **ALICE)
    knock(world, 30)
    kept = audit(world)
    done = [entry.number for entry in kept if entry.outcome is AuditOutcome.DONE]
    assert done == list(range(11, 31))
    assert [e.number for e in kept if e.outcome is AuditOutcome.REFUSED] == [59, 60]


def test_an_entry_goes_when_its_time_is_over_and_a_shorter_time_holds_at_once(
    stable: NewStable,
) -> None:
    world = stable(an_own_pool(), an_own_node(), retention=Retention(audit_ms=3_600_000))
    world.ask(CordonNode, node_id=NODE, **ALICE)
    due_at_ms = world.now_ms + 3_600_000
    world.advance(due_at_ms - 1)
    assert actions(world) == ["cordon_node"]
    world.advance(due_at_ms)
    assert actions(world) == []
    world.ask(UncordonNode, node_id=NODE, **ALICE)
    world.advance(due_at_ms + 1_800_000)
    world.configure(an_own_pool(), retention=Retention(audit_ms=1_000_000))
    assert actions(world) == ["apply_configuration"]
