"""Roles of running jobs: the latest one is written and answered, and none of what has ended."""

from hostler.agent.core.effects import WriteRole
from hostler.agent.core.inputs import AllocationKey, RoleWritten
from hostler.wire.agent import AssignRole
from tests.agent.bench import Bench, answers, of

KEY = AllocationKey("a-1", 1)


def a_command(term: int, role: str = "primary", epoch: int = 1) -> AssignRole:
    return AssignRole(
        command_id=f"a-1/role/{term}",
        node_epoch=1,
        allocation_id="a-1",
        epoch=epoch,
        role=role,
        term=term,
    )


def a_bench() -> Bench:
    bench = Bench()
    bench.trust_the_link()
    bench.run()
    return bench


def test_a_role_is_written_and_then_answered() -> None:
    bench = a_bench()
    bench.hear(a_command(1))
    assert of(bench.last, WriteRole) == [WriteRole(key=KEY, role="primary", term=1)]
    assert answers(bench.last) == []
    bench.feed(RoleWritten(key=KEY, term=1))
    assert answers(bench.last) == [("a-1/role/1", "done", "")]


def test_an_earlier_role_that_comes_late_changes_nothing() -> None:
    bench = a_bench()
    bench.hear(a_command(2, "backup"))
    bench.hear(a_command(1))
    assert of(bench.last, WriteRole) == []
    assert answers(bench.last) == [("a-1/role/1", "done", "")]


def test_the_same_again_is_written_again() -> None:
    """The answer may have been lost, and so may what was written before a crash."""
    bench = a_bench()
    for _ in range(2):
        bench.hear(a_command(1))
        assert len(of(bench.last, WriteRole)) == 1
        bench.feed(RoleWritten(key=KEY, term=1))
        assert answers(bench.last) == [("a-1/role/1", "done", "")]


def test_what_cannot_be_written_is_said() -> None:
    bench = a_bench()
    bench.hear(a_command(1))
    bench.feed(RoleWritten(key=KEY, term=1, problem="No space left on device"))
    assert answers(bench.last) == [("a-1/role/1", "refused", "role_not_written")]


def test_what_does_not_run_here_has_no_role() -> None:
    bench = a_bench()
    bench.hear(a_command(1, epoch=2))
    assert answers(bench.last) == [("a-1/role/1", "refused", "allocation_ended")]
