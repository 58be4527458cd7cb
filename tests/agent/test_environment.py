"""What a job finds in its environment, and how its arguments may name it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.agent.runtime.environment import NodeIdentity, of_allocation, of_lease, substitute
from hostler.base.errors import Rejected
from hostler.wire.agent import ExecStart, StartAllocation
from hostler.wire.work import Identity, Launch
from tests.agent.bench import a_start

NODE = NodeIdentity(node_id="n-1", machine_id=None, path="/bin")
FOLDER = Path("/data/allocations/a-1-1")
NOTICE = Path("/data/notice")


def a_job(**env: str) -> StartAllocation:
    identity = Identity(fleet_id="f", bundle_id="b", job="j", replica_index=2)
    return a_start(launch=Launch(argv=["x"], env=env, identity=identity))


def test_only_variables_of_ours_are_replaced() -> None:
    known = {"HOSTLER_JOB": "encoder", "HOME": "/"}
    assert substitute("${HOSTLER_JOB}-${HOSTLER_JOB}.ts", known) == "encoder-encoder.ts"
    assert substitute("${HOME} $HOSTLER_JOB $(id) `id`", known) == "${HOME} $HOSTLER_JOB $(id) `id`"


def test_a_variable_that_does_not_exist_is_an_error_that_names_what_does() -> None:
    with pytest.raises(Rejected, match=r"HOSTLER_JOBB.*HOSTLER_JOB"):
        substitute("${HOSTLER_JOBB}", {"HOSTLER_JOB": "encoder"})


def test_a_job_may_change_its_path_but_not_who_it_is() -> None:
    start = a_job(PATH="/mine", HOSTLER_JOB="other", OUT="${HOSTLER_REPLICA_INDEX}")
    env = of_allocation(start, FOLDER, NODE, notice=NOTICE)
    assert (env["PATH"], env["HOSTLER_JOB"], env["OUT"]) == ("/mine", "j", "2")
    assert "HOSTLER_MACHINE_ID" not in env


def test_a_job_sees_the_gpus_that_it_was_given() -> None:
    start = a_job()
    given = replace(start.launch, devices={"gpu": ["1", "3"], "sdi-in": ["a"]})
    env = of_allocation(replace(start, launch=given), FOLDER, NODE, notice=NOTICE)
    assert (env["HOSTLER_DEVICE_GPU"], env["HOSTLER_DEVICE_SDI_IN"]) == ("1,3", "a")
    assert env["CUDA_VISIBLE_DEVICES"] == "1,3"
    assert "CUDA_VISIBLE_DEVICES" not in of_allocation(start, FOLDER, NODE, notice=NOTICE)


def test_nothing_of_the_agents_own_environment_is_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert "secret" not in of_allocation(a_job(), FOLDER, NODE, notice=NOTICE).values()


def test_a_leased_command_knows_its_lease() -> None:
    start = ExecStart(
        request_id="r", lease_id="l", lease_epoch=3, argv=["x"], env={"A": "${HOSTLER_LEASE_ID}"}
    )
    env = of_lease(start, Path("/data/leases/l-3"), NODE)
    assert (env["A"], env["HOME"], env["HOSTLER_EPOCH"]) == ("l", "/data/leases/l-3", "3")
