"""What is particular to machines on this host."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hostler.agent.box import box_id
from hostler.base.encoding import decode
from hostler.base.ids import MachineId
from hostler.ports.provider import OutcomeUnknown
from hostler.providers.local.processes import pids_of, send_signal
from hostler.providers.local.provider import BIRTH_MS_MAX, KEEP_DEAD_MS, LocalProvider
from hostler.providers.local.tags import MACHINE_MARK
from hostler.testing.provider_conformance.suite import end, listed
from tests.eventually import eventually, eventually_async
from tests.providers.labs import LocalLab


class ShiftedClock:
    """The real clock, set forward by hand."""

    def __init__(self, lab: LocalLab) -> None:
        self._clock = lab.clock
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.ahead_ms


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[LocalLab]:
    lab = LocalLab(tmp_path / "local")
    yield lab
    lab.clean_up()


@pytest.fixture
def clock(lab: LocalLab) -> ShiftedClock:
    return ShiftedClock(lab)


@pytest.fixture
def provider(lab: LocalLab, clock: ShiftedClock) -> LocalProvider:
    context = msgspec.structs.replace(lab.context(), clock=clock)
    # A job that leaves its agent's session and outlives it, as supervised jobs do.
    script = "setsid sleep 600 & exec sleep 600"
    return LocalProvider(context, lambda _: ["sh", "-c", script])


async def test_the_join_token_is_for_its_owners_eyes(
    lab: LocalLab, provider: LocalProvider
) -> None:
    machine = await provider.launch(lab.request("n-1/launch/1"))
    options = lab.folder / "machines" / machine.machine_id / "agent.json"
    assert stat.S_IMODE(options.stat().st_mode) == 0o600
    told = decode(options.read_bytes(), dict)
    assert told["join_token"] == "secret"
    assert (told["node_id"], told["machine_id"]) == ("n-1", machine.machine_id)
    assert told["shape"]["capacity"] == 4
    (agent,) = (int((options.parent / "started").read_text()),)
    assert b"secret" not in Path(f"/proc/{agent}/cmdline").read_bytes()
    assert b"secret" not in Path(f"/proc/{agent}/environ").read_bytes()
    assert os.getsid(agent) == agent


def both_of(machine_id: MachineId) -> list[int]:
    """Return a machine's two processes once both are there."""
    eventually(lambda: len(pids_of(machine_id)) == 2)
    return pids_of(machine_id)


async def test_a_machine_lives_while_any_of_its_processes_does(
    lab: LocalLab, provider: LocalProvider
) -> None:
    machine = await provider.launch(lab.request("n-1/launch/1"))
    pids = both_of(machine.machine_id)
    agent = int((lab.folder / "machines" / machine.machine_id / "started").read_text())
    send_signal(machine.machine_id, [agent], signal.SIGKILL)
    eventually(lambda: len(pids_of(machine.machine_id)) == 1)
    assert await provider.get(machine.machine_id) == machine
    await end(provider, machine.machine_id)
    assert pids_of(machine.machine_id) == []
    assert not (lab.folder / "machines" / machine.machine_id).exists()
    assert len(pids) == 2


async def test_a_machine_whose_processes_all_died_is_gone_and_not_started_again(
    lab: LocalLab, provider: LocalProvider, clock: ShiftedClock
) -> None:
    machine = await provider.launch(lab.request("n-1/launch/1"))
    eventually(lambda: len(pids_of(machine.machine_id)) == 2)
    send_signal(machine.machine_id, pids_of(machine.machine_id), signal.SIGKILL)
    eventually(lambda: not pids_of(machine.machine_id))
    assert await provider.get(machine.machine_id) is None
    assert await provider.launch(lab.request("n-1/launch/1")) == machine
    assert pids_of(machine.machine_id) == []
    folder = lab.folder / "machines" / machine.machine_id
    assert folder.exists()
    clock.ahead_ms = KEEP_DEAD_MS + 1
    assert await listed(provider) == []
    assert not folder.exists()


async def test_a_stop_that_was_cut_off_is_ended_by_whoever_looks(
    lab: LocalLab, provider: LocalProvider
) -> None:
    """The server went while the machine ended; no folder stays for the sake of that."""
    machine = await provider.launch(lab.request("n-1/launch/1"))
    pids = both_of(machine.machine_id)
    stopping = asyncio.create_task(provider.stop(machine.machine_id))
    folder = lab.folder / "machines" / machine.machine_id

    async def has_begun() -> bool:
        return await asyncio.to_thread((folder / "ending").exists)

    await eventually_async(has_begun)
    stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
    send_signal(machine.machine_id, pids, signal.SIGKILL)
    eventually(lambda: not pids_of(machine.machine_id))
    assert await listed(provider) == []
    assert not folder.exists()


async def test_a_birth_that_never_went_on_is_no_machine_for_ever(
    lab: LocalLab, provider: LocalProvider, clock: ShiftedClock
) -> None:
    await lab.leave_half_born(lab.request("n-1/launch/1"))
    (found,) = await listed(provider)
    clock.ahead_ms = BIRTH_MS_MAX + 1
    assert await provider.get(found.machine_id) is None
    assert await listed(provider) == []


async def test_a_half_written_folder_is_no_machine(lab: LocalLab, provider: LocalProvider) -> None:
    births = lab.folder / "births" / "local-0000"
    births.mkdir(parents=True)
    (births / "label.json").write_bytes(b"{")
    torn = lab.folder / "machines" / "local-1111"
    torn.mkdir(parents=True)
    (torn / "label.json").write_bytes(b"{")
    assert await listed(provider) == []
    await provider.stop(MachineId("local-1111"))
    assert torn.exists()


async def test_what_the_server_is_told_is_not_told_to_machines(
    lab: LocalLab, provider: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTLER_TOKEN", "ht_secret")
    monkeypatch.setenv(MACHINE_MARK, "outer")
    machine = await provider.launch(lab.request("n-1/launch/1"))
    (pid, *_) = pids_of(machine.machine_id)
    environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    told = [entry for entry in environ if entry.startswith(b"HOSTLER_")]
    assert told == [f"{MACHINE_MARK}={machine.machine_id}".encode()]


async def test_another_processs_pid_is_not_killed(lab: LocalLab, provider: LocalProvider) -> None:
    foreign = await lab.make_foreign()
    (pid,) = pids_of(foreign)
    send_signal("local-0000", [pid], signal.SIGKILL)
    assert pids_of(foreign) == [pid]


async def test_a_box_that_was_started_by_hand_is_there_while_anything_of_it_runs(
    lab: LocalLab, provider: LocalProvider
) -> None:
    box = MachineId(box_id(lab.folder / "own-1"))
    assert await provider.get(box) is None
    job = await asyncio.create_subprocess_exec(
        "sleep", "600", env={**os.environ, MACHINE_MARK: box}
    )
    try:
        found = await provider.get(box)
        assert found is not None
        assert found.machine_id == box
        assert await listed(provider) == []
        await provider.stop(box)
        assert job.returncode is None, "what we did not launch is not ours to stop"
    finally:
        job.kill()
        await job.wait()
    assert await provider.get(box) is None


async def test_nothing_is_said_of_a_box_on_another_host(provider: LocalProvider) -> None:
    with pytest.raises(OutcomeUnknown):
        await provider.get(MachineId("box-0123456789ab-0123456789ab"))


async def test_what_an_agent_wrote_is_told(lab: LocalLab, clock: ShiftedClock) -> None:
    context = msgspec.structs.replace(lab.context(), clock=clock)
    script = "echo one; echo no disk >&2; exec sleep 600"
    provider = LocalProvider(context, lambda _: ["sh", "-c", script])
    machine = await provider.launch(lab.request("n-1/launch/1"))

    async def is_written() -> bool:
        return "no disk" in await provider.boot_log(machine.machine_id, 1_000)

    await eventually_async(is_written, what="the log")
    assert await provider.boot_log(machine.machine_id, 1_000) == "one\nno disk\n"
    assert await provider.boot_log(machine.machine_id, 5) == "disk\n"
    await end(provider, machine.machine_id)
    assert await provider.boot_log(machine.machine_id, 1_000) == ""
