"""Containers: what they may do, how they end, and what becomes of them (SC-199, SC-205)."""

from __future__ import annotations

import asyncio

import pytest

from hostler.model.shape import Shape
from hostler.ports.provider import ProviderContext
from hostler.providers.docker.options import DockerOptions, host_config, problems_of
from hostler.providers.docker.provider import PROVIDER
from hostler.testing.provider_conformance.suite import end, listed
from tests.eventually import eventually_async
from tests.providers.docker_lab import DockerLab, with_silence


@pytest.mark.slow
async def test_sc_205_a_container_ends_itself_when_its_server_is_silent(
    docker_lab: DockerLab,
) -> None:
    """L23; then S-205: what has ended is listed until it is removed."""
    provider = await docker_lab.open()
    machine = await provider.launch(with_silence(docker_lab.request("n-1/launch/1"), 1_000))

    async def has_ended() -> bool:
        return await provider.get(machine.machine_id) is None

    await eventually_async(has_ended, what="the container to end itself")
    assert await listed(provider) == [machine]
    await end(provider, machine.machine_id)
    assert await listed(provider) == []
    assert await docker_lab.inspect(machine.machine_id) is None


@pytest.mark.slow
async def test_a_probe_puts_the_end_off(docker_lab: DockerLab) -> None:
    provider = await docker_lab.open()
    request = with_silence(docker_lab.request("n-1/launch/1"), 2_000)
    machine = await provider.launch(request)
    seen = 0

    async def has_outlived_two_silences() -> bool:
        nonlocal seen
        await provider.probe(machine.machine_id)
        seen += 1
        return docker_lab.clock.now_ms() - machine.created_at_ms > 4_500

    await eventually_async(has_outlived_two_silences, what="time to pass")
    assert await provider.get(machine.machine_id) is not None


@pytest.mark.slow
async def test_sc_199_limits_and_labels_of_a_container_are_as_asked(docker_lab: DockerLab) -> None:
    """S-242: labels of the operator do not change whose a container is."""
    provider = await docker_lab.open()
    options = docker_lab.options(labels={"team": "video"}, env={"GREETING": "hello"})
    machine = await provider.launch(docker_lab.request("n-1/launch/1", options=options))
    told = await asyncio.to_thread(docker_lab.engine.podman, "inspect", machine.machine_id)
    for part in ('"team": "video"', '"hostler.fleet": "f-ours"', '"Privileged": false', "GREETING"):
        assert part in told


@pytest.mark.slow
async def test_a_check_looks_at_the_engine_and_the_image(docker_lab: DockerLab) -> None:
    assert PROVIDER.check is not None
    context = ProviderContext(fleet_id="f-ours", folder=docker_lab.folder, clock=docker_lab.clock)
    engine, image = await PROVIDER.check(context, docker_lab.options())
    assert (engine.is_good, image.is_good) == (True, True)
    _, image = await PROVIDER.check(context, docker_lab.options(image="localhost/none"))
    assert (image.is_good, image.detail) == (False, "not there: pull it")
    (engine,) = await PROVIDER.check(context, docker_lab.options(socket="/no/such"))
    assert not engine.is_good


def test_nothing_is_open_that_was_not_asked_for() -> None:
    closed = host_config(DockerOptions(image="i"), Shape(memory_bytes=2**20, cores_milli=500))
    assert closed["Privileged"] is False
    assert closed["Binds"] == []
    assert "NetworkMode" not in closed
    assert closed["SecurityOpt"] == ["no-new-privileges"]
    assert (closed["Memory"], closed["NanoCpus"]) == (2**20, 500_000_000)


def test_all_that_is_wrong_with_options_is_said_at_once() -> None:
    options = DockerOptions(
        image="", socket="engine.sock", labels={"hostler.fleet": "mine"}, mounts=["here"]
    )
    assert [problem.partition(":")[0] for problem in problems_of(options)] == [
        *("image", "socket", "labels.hostler.fleet", "mounts[0]"),
    ]


@pytest.mark.slow
async def test_what_a_container_wrote_and_how_it_ended_is_told(docker_lab: DockerLab) -> None:
    provider = await docker_lab.open()
    machine = await provider.launch(docker_lab.request("n-1/launch/1"))
    assert await provider.boot_log(machine.machine_id, 1_000) == ""
    script = "for n in 1 2 3; do echo line $n >/proc/1/fd/1; done; echo no disk >/proc/1/fd/2"
    await asyncio.to_thread(
        docker_lab.engine.podman, "exec", machine.machine_id, "sh", "-c", script
    )

    async def is_written() -> bool:
        return "no disk" in await provider.boot_log(machine.machine_id, 1_000)

    await eventually_async(is_written, what="the log")
    log = await provider.boot_log(machine.machine_id, 1_000)
    assert "line 1\nline 2\nline 3" in log
    assert len(await provider.boot_log(machine.machine_id, 4)) == 4
    await asyncio.to_thread(docker_lab.engine.podman, "kill", machine.machine_id)
    told = await provider.boot_log(machine.machine_id, 1_000)
    assert "line 3" in told
    assert told.endswith("the container ended with exit code 137")
    await end(provider, machine.machine_id)
    assert await provider.boot_log(machine.machine_id, 1_000) == ""
