"""The recipes of docs/recipes do what they say, on machines that are processes on this host."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import hostler.embedded
from hostler.wire.http import CreateTokenRequest
from tests.embedded.lab import fakes
from tests.eventually import eventually_async
from tests.tidy.sources import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

RECIPES = ROOT / "examples" / "recipes"


def recipe(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"recipe_{name}", RECIPES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def local(name: str = "runners", **pool: Any) -> dict[str, Any]:
    config = fakes(tier={"provider": "local", "boot": "60s", "node_count_max": 4}, **pool)
    config["pools"] = {name: config["pools"]["runners"]}
    return config


class StandInGitHub:
    """The three calls that the recipe makes; a job starts when a runner is made for one."""

    def __init__(self, jobs: list[int]) -> None:
        self.queued = {job: ["hostler"] for job in jobs}
        self.names: list[str] = []

    def get(self, path: str, status: str) -> dict[str, Any]:
        if path.endswith("/actions/runs"):
            return {"workflow_runs": [{"id": 7}] if status == "queued" else []}
        found = [
            {"id": job, "status": "queued", "labels": labels} for job, labels in self.queued.items()
        ]
        return {"jobs": [*found, {"id": 1, "status": "queued", "labels": []}]}

    def make_runner(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.names.append(asked["name"])
        job = next(iter(self.queued))
        del self.queued[job]
        return {"encoded_jit_config": f"jit-{job}"}

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                self._answer(stand_in.get(path, query.removeprefix("status=")))

            def do_POST(self) -> None:
                assert self.headers["Authorization"] == "Bearer secret"
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(stand_in.make_runner(asked))

            def _answer(self, told: dict[str, Any]) -> None:
                body = json.dumps(told).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()


async def test_each_github_job_gets_a_machine_of_its_own(tmp_path: Path) -> None:
    github_runners, stand_in = recipe("github_runners"), StandInGitHub([11, 12])
    ran = tmp_path / "ran"
    runner = ["sh", "-c", f'echo "$ACTIONS_RUNNER_INPUT_JITCONFIG $HOSTLER_NODE_ID" >>{ran}']
    async with AsyncExitStack() as stack:
        url = stack.enter_context(stand_in.serving())
        fleet = await stack.enter_async_context(hostler.embedded.open(local(uses_max=1, warm=2)))
        github = github_runners.GitHub(url, "acme/app", "secret")
        serving = asyncio.create_task(
            github_runners.serve(fleet, github, "hostler", "runners", runner, poll_s=0.1)
        )

        async def is_settled() -> bool:
            leases = await fleet.leases(include_ended=True)
            return [one.outcome for one in leases] == ["healthy", "healthy"]

        await eventually_async(is_settled, within_s=60)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await github.close()
        lines = [line.split() for line in ran.read_text().splitlines()]
        assert sorted(config for config, _ in lines) == ["jit-11", "jit-12"]
        assert len({node for _, node in lines}) == 2
        assert len(set(stand_in.names)) == 2


SUITE = """
import os
import pytest
from package.thing import ANSWER

@pytest.mark.parametrize("number", range(6))
def test_on_a_leased_node(number, tmp_path):
    assert ANSWER == 42
    assert os.environ["HOSTLER_LEASE_ID"].startswith("l-")
    (tmp_path / "file").write_text("x")
    print("ran in", os.environ["HOSTLER_NODE_ID"])
"""


async def test_pytest_spreads_a_suite_over_leased_nodes(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    (suite / "package").mkdir(parents=True)
    (suite / "package" / "__init__.py").touch()
    (suite / "package" / "thing.py").write_text("ANSWER = 42\n")
    (suite / "test_it.py").write_text(SUITE)
    (suite / "pytest.ini").write_text("[pytest]\n")
    scripts = Path(sys.executable).parent
    async with hostler.embedded.open(local(warm=2)) as fleet:
        made = await fleet.create_token(CreateTokenRequest(name="ci", role="lessee"))
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("PYTEST")},
            "PATH": f"{RECIPES / 'xdist'}:{scripts}:{os.environ['PATH']}",
            "HOSTLER_SERVER": fleet.url,
            "HOSTLER_TOKEN": made.secret,
            "HOSTLER_KEY": "suite",
            "HOSTLER_COPY_IN": str(suite),
        }
        done = await asyncio.to_thread(
            subprocess.run,
            [
                *(sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider"),
                *("-rP", "-d", "--tx", f"2*ssh=runners//chdir=.//python={sys.executable}"),
            ],
            cwd=suite,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "6 passed" in done.stdout
        nodes = {line for line in done.stdout.splitlines() if line.startswith("ran in")}
        assert len(nodes) == 2, done.stdout
        leases = await fleet.leases(include_ended=True)
        assert {(one.key, one.holder) for one in leases} == {("suite", "ci")}


async def test_sessions_are_apart_and_bounded(tmp_path: Path) -> None:
    sandboxes = recipe("sandboxes")
    config = yaml.safe_load((RECIPES / "sandboxes.yaml").read_text())
    tier = config["pools"]["sandboxes"]["tiers"][0]
    tier |= {"provider": "local", "options": {}, "boot": "60s"}
    async with hostler.embedded.open(config) as fleet:
        async with (
            sandboxes.sandbox(fleet, "sandboxes", "ada") as ada,
            sandboxes.sandbox(fleet, "sandboxes", "bob") as bob,
        ):
            assert ada.lease.node_id != bob.lease.node_id
            await ada.write("note", b"mine")
            assert (await ada.run("cat note")).output == "mine"
            assert (await bob.run("cat note")).exit_code == 1
            late = await ada.run("echo begun; sleep 600", timeout_s=1.0)
            assert (late.is_late, late.output) == (True, "begun\n")
            much = await bob.run("head -c 200000 /dev/zero | tr '\\0' x")
            assert (len(much.output), much.is_cut) == (sandboxes.OUTPUT_BYTES_MAX, True)
            assert (await ada.run("cat note")).output == "mine"
            used = {ada.lease.node_id, bob.lease.node_id}
        async with sandboxes.sandbox(fleet, "sandboxes", "eve") as eve:
            assert eve.lease.node_id not in used


def test_the_sandbox_program_answers_in_json(tmp_path: Path) -> None:
    config = tmp_path / "hostler.yaml"
    config.write_text(yaml.safe_dump(local("sandboxes")))
    done = subprocess.run(
        [sys.executable, str(RECIPES / "sandboxes.py"), str(config)],
        input="ada echo hello > note\nada cat note; exit 3\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["exit_code"], one["output"]) for one in answers] == [(0, ""), (3, "hello\n")]
    assert done.returncode == 0, done.stderr
