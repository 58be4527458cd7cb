"""Node services with a real agent: offered, ready, seen over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.client import ClientError
from tests.api.lab import CONFIG, a_bundle, running
from tests.eventually import eventually_async

SERVICES = """
services:
  router:
    pools: [studio]
    consumes: {capacity: 0}
    provides: {ndi: 2}
    run:
      argv: [sh, -c, "while [ ! -e FLAG ]; do sleep 0.1; done; touch up; sleep 1000"]
      readiness: {exec: {argv: [test, -e, up], interval: 50ms}}
      stop: {grace: 1s}
  spare:
    life: lazy
    pools: [studio]
    provides: {spare: 1}
    run: {argv: [sleep, "1000"]}
"""
USER = """
bundle: user
pool: studio
jobs: [{name: main, requires: {capabilities: {ndi: 1}}, run: {argv: [sleep, "1000"]}}]
"""


async def test_what_needs_a_service_starts_when_that_is_ready(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    config = CONFIG + SERVICES.replace("FLAG", str(flag))
    async with running(tmp_path, config=config) as lab, lab.client() as client:
        node = await lab.agent("studio")
        await client.submit_bundle(a_bundle(USER))
        view = await client.service("router")
        assert [(one.node_id, one.state, one.consumer_count) for one in view.nodes] == [
            (node.node_id, "starting", 1)
        ]
        (waiting,) = await client.allocations(bundle="user")
        assert waiting.phase == "reserved"
        flag.touch()

        async def is_running() -> bool:
            (one,) = await client.allocations(bundle="user")
            return one.phase == "ready"

        assert await eventually_async(is_running, what="the consumer is ready")
        listed = {one.name: one for one in await client.services()}
        assert (listed["router"].ready_count, listed["router"].nodes) == (1, [])
        assert [one.state for one in (await client.service("spare")).nodes] == ["on_demand"]
        assert (await client.node(node.node_id)).allocation_count == 1
        with pytest.raises(ClientError, match="node service"):
            await client.delete_bundle("service.router")
        with pytest.raises(ClientError) as missing:
            await client.service("nothing")
        assert missing.value.status == 404
