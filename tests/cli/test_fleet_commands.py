"""Commands against a server with two real nodes: what they show and do."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hostler.cli.errors import ExitCode
from tests.cli.conftest import CONFIGURATION, Cli, ServerProcess, environment, start_server
from tests.eventually import eventually, holds

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SERVICE = """\
bundle: web
pool: studio
labels: {team: web}
jobs:
  - name: site
    requires: {capacity: 2, cores: 100m, memory: 1MiB}
    run:
      argv: [sh, -c, "echo hello; touch up; while :; do sleep 0.2; done"]
      readiness: {exec: {argv: [test, -e, up], interval: 50ms}}
      stop: {grace: 1s}
"""


@pytest.fixture(scope="module")
def fleet_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a node in each pool."""
    folder = tmp_path_factory.mktemp("fleet")
    server = start_server(folder, CONFIGURATION, "--ephemeral")
    agents = []
    for pool in ("studio", "runners"):
        argv = ("--server", server.url, "--data", str(folder / pool), "--pool", pool)
        with (folder / f"{pool}.log").open("wb") as log:
            agents.append(
                subprocess.Popen(
                    [
                        *(sys.executable, "-P", "-m", "hostler", "agent", *argv),
                        *("--tier", "own", "--capacity", "4", "--stop-work-on-exit"),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment(),
                    start_new_session=True,
                )
            )
        eventually(partial(holds, folder / f"{pool}.log", b"agent started"))
    yield server
    for agent in agents:
        agent.terminate()
        assert agent.wait(timeout=60) == 0
    assert server.end() == 0


@pytest.fixture
def fleet(fleet_server: ServerProcess, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Cli:
    """Run commands against the server with nodes."""
    monkeypatch.setenv("HOSTLER_SERVER", fleet_server.url)
    eventually(lambda: cli("get", "nodes").out.count(" ready ") == 2, what="two nodes are ready")
    return cli


@pytest.fixture
def web(fleet: Cli, tmp_path: Path) -> Iterator[Cli]:
    """The same, with a bundle that runs."""
    file = tmp_path / "web.yaml"
    file.write_text(SERVICE)
    ended = fleet("apply", "-f", str(file), "--wait")
    assert (ended.code, ended.out) == (0, "bundle/web created\n"), ended
    yield fleet
    fleet("delete", "bundle", "web", "--wait")


def node_of(cli: Cli, pool: str) -> str:
    nodes = json.loads(cli("get", "nodes", "--pool", pool, "-o", "json").out)["items"]
    return str(nodes[0]["node_id"])


def test_a_bundle_is_shown_from_every_side(web: Cli) -> None:
    node = node_of(web, "studio")
    replica = web("describe", "replica", "web/site/0").out
    assert f"Node:                {node}" in replica
    allocation_id = json.loads(web("get", "replica", "web/site/0", "-o", "json").out)[
        "allocation_id"
    ]
    allocation = web("describe", "allocation", allocation_id).out
    assert "Needs:         capacity 2, 0.1 cores, 1MiB" in allocation
    assert "replica_ready" in allocation
    bundle = web("describe", "bundle", "web").out
    assert "Labels:             team=web" in bundle
    assert "site   silver   capacity 2, 0.1 cores, 1MiB   exec" in bundle
    described = web("describe", "node", node).out
    assert "Agent:         connected" in described
    assert "Used for:      1 placed" in described
    # Its latest events; how it became ready may be further back, whichever test came first.
    assert "replica_ready" in described
    assert f"  {node}" in web("describe", "pool", "studio").out
    assert web("get", "alloc", "--node", node, "-o", "name").out == f"allocation/{allocation_id}\n"
    assert "capacity 4" in web("get", "nodes", "-o", "wide").out


def test_logs_are_what_the_job_wrote(web: Cli) -> None:
    assert web("logs", "web/site/0").out == "hello\n"
    assert web("logs", "replica/web/site/0", "--tail", "3").out == "lo\n"


def test_an_explanation_names_what_keeps_a_replica_from_a_node(web: Cli) -> None:
    here, there = node_of(web, "studio"), node_of(web, "runners")
    assert f"It runs on {here} and is ready." in web("explain", "web/site/0").out
    kept = web("explain", "replica", "web/site/0", "--node", there).out
    assert f"From {there} it is kept by:\n  wrong_pool" in kept
    assert "It would do after this:\n  name runners as a fallback pool of the bundle\n" in kept
    own = web("explain", "web/site/0", "--node", here).out
    assert f"Nothing keeps web/site/0 from {here}.\nIt is the place that it has." in own
    assert web("explain", "web/site/0", "--node", "n-999").code == 3
    assert web("explain", f"node/{here}").out.startswith(f"node {here} is ready\n")


def test_a_decision_is_made_again_as_it_was_and_with_a_fact_altered(web: Cli) -> None:
    here = node_of(web, "studio")
    shown = json.loads(web("explain", "web/site/0", "-o", "json").out)["decisions"][-1]
    again = web("explain", "web/site/0", "--at", f"rev:{shown['revision']}").out
    assert "run again: it came out the same, byte for byte." in again
    assert f"Decided then: placed on {here} (best fit in the first tier that has room)" in again
    events = web("events", "-o", "json").out.splitlines()
    seq = next(one["seq"] for one in map(json.loads, events) if one["kind"] == "replica_placed")
    assert "Decided then: placed" in web("explain", "web/site/0", "--at", str(seq)).out
    full = web("explain", "web/site/0", "--at", f"rev:{shown['revision']}", "--if", "capacity=99")
    assert "With capacity=99: failed (no_capacity)" in full.out
    now = web("explain", "web/site/0", "--if", "capacity=99").out
    assert f"Decided now, as if it had no place: placed on {here}" in now
    assert "With capacity=99: failed (no_capacity)" in now
    assert web("explain", "web/site/0", "--at", "rev:999999").code == 3
    for wrong, code in ((["--at", "x"], 2), (["--if", "sing=loud"], 4)):
        assert web("explain", "web/site/0", *wrong).code == code
    assert web("explain", "pending", "--at", "3").code == 2
    assert web("explain", here, "--if", "capacity=9").code == 2


def test_a_node_is_drained_and_taken_back(web: Cli) -> None:
    node = node_of(web, "studio")
    assert web("cordon", node, "--reason", "kernel").out == f"node/{node} cordoned\n"
    assert "ready cordoned" in web("get", "nodes").out
    assert "Cordoned by:   local kernel" in web("describe", "node", node).out
    stays = web("drain", node, "--deadline", "0s")
    assert stays.code == 1
    assert "web/site/0 stays: no_capacity" in stays.err
    drained = web("drain", node, "--deadline", "0s", "--force")
    assert drained.out == f"node/{node} draining\nnode/{node} drained: nothing left\n"
    assert '"is_done": true' in web("drain", node, "-o", "json").out
    assert "no_capacity" in web("get", "replicas").out
    assert web("uncordon", node).out == f"node/{node} uncordoned\n"
    eventually(lambda: " ready " in web("get", "replicas").out, what="the replica is back")


def test_a_rollout_is_watched_steered_and_taken_back(web: Cli, tmp_path: Path) -> None:
    none = web("rollout", "status", "web")
    assert (none.code, "never been rolled out" in none.err) == (3, True)
    policy = "rollout: {healthy_after: 100ms}\njobs:"
    file = tmp_path / "better.yaml"
    file.write_text(SERVICE.replace("echo hello", "echo better").replace("jobs:", policy))
    assert web("apply", "-f", str(file)).code == 0
    done = web("rollout", "status", "web", "--wait", "-o", "json")
    assert done.code == 0, done
    assert (json.loads(done.out)["phase"], json.loads(done.out)["settled_count"]) == ("done", 1)
    file.write_text(SERVICE.replace("echo hello", "exit 3").replace("jobs:", policy))
    assert web("apply", "-f", str(file)).code == 0
    eventually(
        lambda: "rolled_back" in web("rollout", "status", "web").out, what="it is taken back"
    )
    told = web("rollout", "status", "web")
    assert told.code == 4
    assert "exited with 3" in told.err
    again = web("rollout", "pause", "web")
    assert (again.code, "it is rolled_back" in again.err) == (4, True)


def test_a_job_is_stopped_and_started(web: Cli) -> None:
    stopped = web("stop", "web/site", "--wait")
    assert stopped.out == "job/web/site stopping\njob/web/site stopped\n"
    assert "stopped_by_operator" in web("get", "replicas").out
    assert web("start", "web/site").code == 0
    eventually(lambda: " ready " in web("get", "replicas").out, what="it runs again")
    assert web("reset", "web").out == "bundle/web reset\n"
    assert web("reset", "web/site/0").out == "replica/web/site/0 reset\n"
    assert web("reset", "web/site/9").code == 3


def test_a_command_runs_as_if_it_ran_here(fleet: Cli, capfd: pytest.CaptureFixture[str]) -> None:
    argv = ("run", "--pool", "runners", "--no-stdin", "-e", "WHO=me", "--")
    ended = fleet(*argv, "sh", "-c", "echo $WHO; echo no >&2; exit 7")
    assert (ended.code, ended.out, ended.err) == (7, "me\n", "no\n")
    missing = fleet(*argv, "no-such-program")
    assert missing.code == 127
    assert missing.err == "hostler: no-such-program: there is no such program\n"
    assert fleet("run", "-p", "runners", "-e", "=x", "--", "true").code == 2


def test_the_life_of_a_lease(fleet: Cli) -> None:
    node = node_of(fleet, "runners")
    acquired = fleet("lease", "acquire", "--pool", "runners", "--for", "1m")
    lease_id = acquired.out.split()[0].removeprefix("lease/")
    assert acquired.out.startswith(f"lease/{lease_id} held on {node}, expires in ")
    assert f"`hostler lease renew {lease_id}`" in acquired.err
    assert fleet("run", "--lease", lease_id, "--no-stdin", "--", "echo", "hi").out == "hi\n"
    waiting = fleet("lease", "acquire", "--pool", "runners", "--timeout", "10ms")
    assert waiting.code == 4
    assert "1/1 leased" in fleet("get", "nodes").out
    assert fleet("lease", "renew", lease_id).out.startswith(f"lease/{lease_id} held")
    shown = fleet("lease", "show", lease_id).out
    assert "Expires in:" in shown
    assert f"Node:           {node}" in shown
    released = fleet("lease", "release", lease_id).out
    assert released == f"lease/{lease_id} settled (healthy) on {node}\n"
    late = fleet("lease", "renew", lease_id)
    assert (late.code, late.err) == (
        4,
        f"hostler: lease {lease_id} is not held any more: healthy\n",
    )
    assert "healthy" in fleet("get", "leases", "--all").out


def test_the_line_is_shown_in_order_with_what_it_waits_for(
    fleet: Cli, fleet_server: ServerProcess
) -> None:
    node_of(fleet, "runners")
    held = fleet("lease", "acquire", "--pool", "runners", "-o", "name").out.strip()
    asking = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", "hostler", "lease", "acquire", "-p", "runners", *more],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**environment(), "HOSTLER_SERVER": fleet_server.url},
        )
        for more in (("--key", "later"), ("--key", "sooner", "--priority", "9"))
    ]
    try:
        eventually(
            lambda: len(json.loads(fleet("get", "waiting", "-o", "json").out)["items"]) == 2,
            what="two stand in line",
        )
        rows = [line.split() for line in fleet("get", "waiting").out.splitlines()]
        assert rows[0][:4] == ["PLACE", "LEASE", "POOL", "KEY"]
        assert [(row[0], row[3]) for row in rows[1:]] == [("1", "sooner"), ("2", "later")]
        told = json.loads(fleet("get", "leases", "-o", "json").out)["items"]
        waiting = [each for each in told if each["phase"] == "waiting"]
        assert {each["reason"] for each in waiting} == {"no_capacity"}
        assert all("1 ready nodes with 1 leases" in each["reason_detail"] for each in waiting)
    finally:
        for each in asking:
            each.send_signal(signal.SIGINT)
            each.wait(timeout=30)
        fleet("lease", "release", held.partition("/")[2])


def test_a_watch_shows_changes_and_the_end(
    web: Cli, fleet_server: ServerProcess, tmp_path: Path
) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as to_out, err.open("wb") as to_err:
        watch = subprocess.Popen(
            [sys.executable, "-P", "-m", "hostler", "get", "replicas", "-w", "-o", "json"],
            stdin=subprocess.DEVNULL,
            stdout=to_out,
            stderr=to_err,
            env={**environment(), "HOSTLER_SERVER": fleet_server.url},
        )
    try:
        eventually(lambda: "web/site/0" in out.read_text(), what="the watch shows what is")
        assert web("delete", "bundle", "web", "--wait").code == 0
        eventually(lambda: "replica/web/site/0 is gone" in err.read_text(), what="it is gone")
    finally:
        watch.send_signal(signal.SIGINT)
        assert watch.wait(timeout=30) == 130
    phases = [json.loads(line)["phase"] for line in out.read_text().splitlines()]
    assert phases[0] == "placed"


def test_a_bundle_is_applied_only_as_planned_and_to_what_was_seen(web: Cli, tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    seen = json.loads(web("get", "bundle", "web", "-o", "json").out)["generation"]
    file.write_text(SERVICE.replace("team: web", "team: other"))
    plan = json.loads(web("plan", "-f", str(file), "-o", "json").out)["items"][0]
    stale = web("apply", "-f", str(file), "--if-generation", str(seen - 1))
    assert stale.code == ExitCode.REFUSED
    assert f"the bundle is at generation {seen}, not {seen - 1}" in stale.err
    past = web("apply", "-f", str(file), "--at", "1")
    assert past.code == ExitCode.REFUSED
    assert "plan" in past.err
    at = ("--at", str(plan["revision"]), "--if-generation", str(seen))
    assert web("apply", "-f", str(file), *at).code == 0
    assert json.loads(web("get", "bundle", "web", "-o", "json").out)["generation"] == seen + 1


def test_a_maintenance_is_added_listed_and_removed(fleet: Cli, tmp_path: Path) -> None:
    when = ("--start", "2199-12-02T02:00", "--stop", "2199-12-02T04:00")
    said = fleet("maintenance", "add", "fan", "--pool", "studio", *when, "--reason", "loud").out
    assert said == (
        "maintenance/fan is planned from 2199-12-02 02:00 UTC to 2199-12-02 04:00 UTC\n"
    )
    assert "loud" in fleet("maintenance", "list", "-o", "wide").out
    file = tmp_path / "sunday.yaml"
    file.write_text(
        "name: sunday\nlabels: {rack: a}\ntime_zone: Europe/Berlin\n"
        'windows: [{days: [sunday], start: "03:00", end: "04:00"}]\n'
    )
    assert "maintenance/sunday is planned" in fleet("maintenance", "add", "-f", str(file)).out
    assert "fan" in fleet("get", "maintenance").out
    again = fleet("maintenance", "add", "fan", "--node", "n-000001", *when)
    assert again.code == ExitCode.REFUSED
    bad = fleet("maintenance", "add", "x", "--label", "rack", *when)
    assert (bad.code, "NAME=VALUE" in bad.err) == (ExitCode.BAD_INPUT, True)
    nothing = fleet("maintenance", "add", "x")
    assert (nothing.code, "pools" in nothing.err) == (ExitCode.BAD_INPUT, True)
    for name in ("fan", "sunday"):
        assert fleet("maintenance", "remove", name).out == f"maintenance/{name} is called off\n"
    assert fleet("maintenance", "remove", "fan").code == ExitCode.NOT_FOUND
