"""Fixed hosts: which is taken, how it is verified, cleaned and left alone (SC-197, SC-198, SC-206).

SC-206's syntax of one text for user, host and port does not apply: they are fields of their own.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from hostler.ports.commands import MachineCommand
from hostler.ports.provider import CapacityUnavailable, CredentialsRejected
from hostler.providers.ssh.options import HostAddress, SshOptions, hosts_of, problems_of
from hostler.providers.ssh.provider import PROVIDER
from hostler.providers.ssh.scripts import free_script
from hostler.testing.provider_conformance.suite import end, listed
from tests.eventually import eventually_async
from tests.machines import free_port
from tests.providers.ssh_lab import SshLab, marked

pytestmark = pytest.mark.slow

LONELY_UID: Final = 61_234
"""A user whom no host has."""


async def test_s_197_each_machine_has_a_host_of_its_own_and_a_stopped_one_frees_it(
    ssh_lab: SshLab,
) -> None:
    provider = await ssh_lab.open()
    machines = [await provider.launch(ssh_lab.request(f"n-{i}/launch/1")) for i in range(3)]
    assert len({machine.machine_id.rpartition("-")[0] for machine in machines}) == 3
    with pytest.raises(CapacityUnavailable, match="no host"):
        await provider.launch(ssh_lab.request("n-4/launch/1"))
    await end(provider, machines[0].machine_id)
    again = await provider.launch(ssh_lab.request("n-4/launch/1"))
    assert again.machine_id.rpartition("-")[0] == machines[0].machine_id.rpartition("-")[0]


async def test_a_dead_first_host_does_not_block_the_others(ssh_lab: SshLab) -> None:
    """G-72."""
    first = msgspec.structs.replace(ssh_lab.addresses()[0], port=free_port())
    options = ssh_lab.options(hosts=[first, *ssh_lab.addresses()[1:]])
    provider = await ssh_lab.open()
    machine = await provider.launch(ssh_lab.request("n-1/launch/1", options=options))
    assert await listed(provider) == [machine]


async def test_a_host_with_another_key_is_not_trusted(ssh_lab: SshLab) -> None:
    one, other, _ = ssh_lab.addresses()
    posing = msgspec.structs.replace(one, host_key=other.host_key)
    provider = await ssh_lab.open()
    with pytest.raises(CredentialsRejected, match="key"):
        await provider.launch(
            ssh_lab.request("n-1/launch/1", options=ssh_lab.options(hosts=[posing]))
        )
    assert await listed(provider) == []


async def test_keys_of_hosts_may_stand_in_a_file(ssh_lab: SshLab) -> None:
    host = ssh_lab.hosts.hosts[0]
    ssh_lab.folder.mkdir()
    known = ssh_lab.folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{host.port} {host.host_key}\n")
    options = ssh_lab.options(
        hosts=[HostAddress(host="127.0.0.1", port=host.port)], known_hosts=str(known)
    )
    provider = await ssh_lab.open()
    await provider.launch(ssh_lab.request("n-1/launch/1", options=options))
    known.write_text("")
    fresh = await ssh_lab.open()
    with pytest.raises(CredentialsRejected):
        await fresh._run((await _claimed(fresh)).host, "true\n")


async def _claimed(provider: Any) -> Any:
    (claim,) = provider._memory.claims()
    return claim


async def test_a_jump_host_leads_to_the_others(ssh_lab: SshLab) -> None:
    jump, there, _ = ssh_lab.addresses()
    options = ssh_lab.options(hosts=[there], jump=jump)
    provider = await ssh_lab.open()
    machine = await provider.launch(ssh_lab.request("n-1/launch/1", options=options))
    found = await provider.probe(machine.machine_id)
    assert found.work_folder.startswith(str(ssh_lab.hosts.hosts[1].home))


async def test_cleaning_ends_what_runs_and_runs_the_operators_command(ssh_lab: SshLab) -> None:
    """X02, L-314 as G-73 wants it: a host is never handed on as it was left."""
    home = ssh_lab.hosts.hosts[0].home
    options = ssh_lab.options(
        hosts=ssh_lab.addresses()[:1], cleanup=["sh", "-c", "echo scrubbed >>$HOME/scrubs"]
    )
    provider = await ssh_lab.open()
    machine = await provider.launch(ssh_lab.request("n-1/launch/1", options=options))
    found = await provider.probe(machine.machine_id)
    command = MachineCommand(
        command_id="c1",
        folder=f"{found.work_folder}/leases/l-1-1",
        argv=["sh", "-c", "echo mine >file; sleep 600 & sleep 600 & exit 0"],
    )
    execution = await provider.exec(machine.machine_id, command)
    while await execution.read() is not None:
        pass
    await execution.close()
    assert marked(str(home))
    await end(provider, machine.machine_id)
    assert not marked(str(home))
    assert (home / "scrubs").read_text() == "scrubbed\n"
    assert [path.name for path in (home / ".hostler").iterdir()] == ["cleanup.log"]


async def test_a_host_that_cannot_be_cleaned_is_left_alone(ssh_lab: SshLab) -> None:
    home = ssh_lab.hosts.hosts[0].home
    options = ssh_lab.options(hosts=ssh_lab.addresses()[:1], cleanup=["false"])
    provider = await ssh_lab.open()
    machine = await provider.launch(ssh_lab.request("n-1/launch/1", options=options))
    await end(provider, machine.machine_id)
    with pytest.raises(CapacityUnavailable) as refused:
        await provider.launch(ssh_lab.request("n-2/launch/1", options=options))
    assert "in quarantine" in str(refused.value)
    assert "clean-up command failed with code 1" in str(refused.value)
    assert PROVIDER.check is not None
    (checked,) = await PROVIDER.check(_context(ssh_lab), options)
    assert (checked.is_good, "in quarantine" in checked.detail) == (False, True)
    (home / ".hostler/quarantine").unlink()
    await provider.launch(ssh_lab.request("n-2/launch/1", options=options))


def _context(lab: SshLab) -> Any:
    from hostler.ports.provider import ProviderContext

    return ProviderContext(fleet_id="f-ours", folder=lab.folder, clock=lab.clock)


async def test_a_host_frees_itself_when_its_server_is_silent(ssh_lab: SshLab) -> None:
    """L23."""
    request = msgspec.structs.replace(ssh_lab.request("n-1/launch/1"), silence_ms_max=1_000)
    provider = await ssh_lab.open()
    machine = await provider.launch(request)

    async def is_free() -> bool:
        return await provider.get(machine.machine_id) is None

    await eventually_async(is_free, what="the host to be free")
    assert not await ssh_lab.is_running(machine.machine_id)


async def test_a_host_that_stops_answering_is_still_told_of(ssh_lab: SshLab) -> None:
    provider = await ssh_lab.open()
    machine = await provider.launch(ssh_lab.request("n-1/launch/1"))
    host = ssh_lab.hosts.hosts[0]
    host.cut_connections()
    host.stop()
    try:
        fresh = await ssh_lab.open()
        assert await listed(fresh) == [machine]
        with pytest.raises(CapacityUnavailable):
            await fresh.get(machine.machine_id)
        with pytest.raises(CapacityUnavailable):
            await fresh.probe(machine.machine_id)
    finally:
        host.start()


async def test_a_check_says_of_each_host_how_it_is(ssh_lab: SshLab) -> None:
    assert PROVIDER.check is not None
    nothing = msgspec.structs.replace(ssh_lab.addresses()[0], port=free_port())
    options = ssh_lab.options(hosts=[nothing, ssh_lab.addresses()[1]])
    gone, free = await PROVIDER.check(_context(ssh_lab), options)
    assert (gone.is_good, free.is_good, free.detail) == (False, True, "free")


def test_all_that_is_wrong_with_options_is_said_at_once() -> None:
    options = SshOptions(
        hosts=[HostAddress(host="-oX"), HostAddress(host="a", port=0)],
        key="",
        connect="soon",
        has_own_user=True,
        folder="..",
    )
    told = "\n".join(problems_of(options))
    for part in (
        *("hosts[0].host", "hosts[1].port", "no key of the host is known", "connect:"),
        *("key:", "has_own_user", "folder:"),
    ):
        assert part in told
    good = SshOptions(hosts=[HostAddress(host="a", host_key="ssh-ed25519 A")], key="k")
    assert problems_of(good) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_user_that_is_there_for_us_alone_keeps_no_process() -> None:
    """X02: a tenant's process that has wiped its environment is found by whose it is."""
    # Not below pytest's own folders, which are closed to others.
    with tempfile.TemporaryDirectory(prefix="hostler-") as folder:
        _clean_user(Path(folder))


def _clean_user(home: Path) -> None:
    (home / ".hostler/ssh-1-1").mkdir(parents=True)
    (home / ".hostler/machine.json").write_text('{"machine_id":"ssh-1-1"}')
    for path in (home, *home.rglob("*")):
        os.chown(path, LONELY_UID, LONELY_UID)
    options = SshOptions(
        hosts=[HostAddress(host="h", host_key="k")], key="k", user="lonely", has_own_user=True
    )
    (host,) = hosts_of(options)
    hidden = subprocess.Popen(
        ["sleep", "600"], user=LONELY_UID, group=LONELY_UID, env={}, start_new_session=True
    )
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", free_script(host, "ssh-1-1")],
            user=LONELY_UID,
            group=LONELY_UID,
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert hidden.wait(timeout=10) == -9
        assert list((home / ".hostler").iterdir()) == []
    finally:
        hidden.kill()
        hidden.wait()


async def test_sc_198_sc_266_only_the_right_words_are_an_answer(
    ssh_lab: SshLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a host that exits 0 but prints something else, then not-ok; exit 255 gives not-ok with
    255 in the reason."""
    provider = await ssh_lab.open()
    machine = await provider.launch(ssh_lab.request("n-1/launch/1"))
    found = await provider.probe(machine.machine_id)
    assert found.work_folder.endswith(machine.machine_id)
    for answer, told in (((0, "/x\nWelcome\nready\n"), "Welcome"), ((255, ""), "255")):

        async def say(*_: object, answer: tuple[int, str] = answer) -> tuple[int, str]:
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(provider, "_run", say)
            with pytest.raises(CapacityUnavailable) as refused:
                await provider.probe(machine.machine_id)
        assert told in str(refused.value.fields)
