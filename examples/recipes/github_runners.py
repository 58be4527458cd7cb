"""One fresh machine for each job of GitHub Actions: ephemeral runners on leased nodes.

    GITHUB_TOKEN=... python github_runners.py --repo acme/app --label hostler --pool runners

Looks for queued jobs that ask for the label, leases a node for each, and runs an ephemeral runner
there, which takes one job and ends. Give the pool `uses_max: 1`, so that no job finds what another
one left, and a machine image with the runner of https://github.com/actions/runner unpacked.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Sequence

import httpx

from hostler.client import Client, LeaseLost, LeaseRefused, RunFailed

POLL_S = 10.0
WAIT_MS = 30 * 60_000
"""How long a job may wait for a machine; then it is seen as queued again, and asked for again."""


class GitHub:
    """What is needed of GitHub's REST API (docs.github.com/rest/actions)."""

    def __init__(self, url: str, repo: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        self.repo = repo
        self._http = httpx.AsyncClient(base_url=f"{url}/repos/{repo}/actions", headers=headers)

    async def queued_jobs(self, label: str) -> list[int]:
        """Return the ids of jobs that wait for a runner with the label."""
        found = []
        for status in ("queued", "in_progress"):  # a run goes on while some of its jobs wait
            runs = await self._get("runs", status=status)
            for run in runs["workflow_runs"]:
                jobs = await self._get(f"runs/{run['id']}/jobs")
                found += [
                    job["id"]
                    for job in jobs["jobs"]
                    if job["status"] == "queued" and label in job["labels"]
                ]
        return found

    async def runner(self, name: str, label: str) -> str:
        """Register a runner that takes one job, and return its configuration: a secret."""
        asked = {"name": name, "runner_group_id": 1, "labels": [label]}
        answer = await self._http.post("/runners/generate-jitconfig", json=asked)
        answer.raise_for_status()
        return str(answer.json()["encoded_jit_config"])

    async def _get(self, path: str, **params: str) -> dict:
        answer = await self._http.get(f"/{path}", params=params)
        answer.raise_for_status()
        return answer.json()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


async def serve_job(
    client: Client, github: GitHub, job_id: int, label: str, pool: str, runner: Sequence[str]
) -> None:
    """Run one runner on one leased node."""
    wanted = {"key": github.repo, "labels": {"job": str(job_id)}, "timeout_ms": WAIT_MS}
    # `ack_ms`: if we are killed between grant and start, the node is free again, as good as new.
    async with client.lease(pool, ack_ms=60_000, **wanted) as lease:
        # Registered only now: a runner's configuration is good for an hour, a wait may be longer.
        config = await github.runner(f"{lease.lease_id}-{lease.view.epoch}", label)
        # By its environment, as other users of the machine see a command's arguments.
        done = await lease.run(runner, env={"ACTIONS_RUNNER_INPUT_JITCONFIG": config})
        print(f"job {job_id} on {lease.node_id}: runner ended with {done.status}", flush=True)
        if done.status != 0:
            lease.poison(f"the runner ended with {done.status}")


async def serve(
    client: Client,
    github: GitHub,
    label: str,
    pool: str,
    runner: Sequence[str],
    poll_s: float = POLL_S,
) -> None:
    """Serve queued jobs until cancelled. Each is asked for once, as long as it is queued."""
    served: dict[int, asyncio.Task[None]] = {}
    try:
        while True:
            try:
                queued = await github.queued_jobs(label)
            except httpx.HTTPError as error:
                print(f"GitHub: {error}", file=sys.stderr)
                queued = []
            for job_id in queued:
                task = served.get(job_id)
                if task is None or task.done():
                    made = _reported(serve_job(client, github, job_id, label, pool, runner))
                    served[job_id] = asyncio.create_task(made)
            done = [job_id for job_id, task in served.items() if task.done()]
            for job_id in done:
                if job_id not in queued:
                    del served[job_id]
            await asyncio.sleep(poll_s)
    finally:
        for task in served.values():
            task.cancel()
        await asyncio.gather(*served.values(), return_exceptions=True)


async def _reported(serving: Awaitable[None]) -> None:
    try:
        await serving
    except (LeaseRefused, LeaseLost, RunFailed, httpx.HTTPError) as error:
        print(f"{error}; the job is served again while it is queued", file=sys.stderr)


async def main() -> None:
    """Read the command line, and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repo", required=True, help="OWNER/NAME")
    parser.add_argument("--label", default="hostler")
    parser.add_argument("--pool", default="runners")
    parser.add_argument("--runner", default="/opt/actions-runner/run.sh")
    parser.add_argument("--github", default="https://api.github.com")
    given = parser.parse_args()
    github = GitHub(given.github, given.repo, os.environ["GITHUB_TOKEN"])
    try:
        async with Client() as client:  # $HOSTLER_SERVER and $HOSTLER_TOKEN
            await serve(client, github, given.label, given.pool, [given.runner])
    finally:
        await github.close()


if __name__ == "__main__":
    asyncio.run(main())
