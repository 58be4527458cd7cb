"""Copying over a real agent, in a fleet within the test's process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import hostler.embedded
from hostler.client import ArchiveRefused, CopyFailed, HeldLease
from tests.embedded.lab import fakes

pytestmark = [pytest.mark.slow, pytest.mark.e2e]


def local(**pool: Any) -> dict[str, Any]:
    """One pool of machines that are processes on this host."""
    return fakes(tier={"name": "local", "provider": "local", "boot": "60s"}, **pool)


@pytest.fixture
async def lease() -> AsyncIterator[HeldLease]:
    async with (
        hostler.embedded.open(local()) as fleet,
        fleet.lease("runners", timeout_ms=60_000) as held,
    ):
        yield held


async def test_folders_and_files_go_there_and_back(lease: HeldLease, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "data").write_bytes(b"\x00\xff" * 3_000_000)
    (tree / "run").write_text("#!/bin/sh\ncat sub/data > out; echo done\n")
    (tree / "run").chmod(0o755)
    await lease.copy_in(tree, "work")
    ran = await lease.run(["./run"], cwd="work")
    assert (ran.status, ran.stdout) == (0, b"done\n")
    await lease.copy_out("work/out", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"\x00\xff" * 3_000_000
    await lease.copy_out("work", tmp_path / "back")
    assert (tmp_path / "back" / "sub" / "data").stat().st_size == 6_000_000
    assert (tmp_path / "back" / "run").stat().st_mode & 0o777 == 0o755

    await lease.copy_in(tree / "run", "-odd name/")
    assert (await lease.run(["ls", "./-odd name"])).stdout == b"run\n"
    await lease.copy_out("-odd name/run", tmp_path / "odd")
    assert (tmp_path / "odd").read_text().startswith("#!")

    with pytest.raises(CopyFailed, match="nothing"):
        await lease.copy_out("nothing", tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(CopyFailed, match=r"(?i)exists|directory"):
        await lease.copy_in(tree, "work/run/deeper")
    with pytest.raises((CopyFailed, ArchiveRefused), match=r"more to copy|larger"):
        await lease.copy_out("work", tmp_path / "small", bytes_max=1_000_000)
    assert (await lease.run(["ln", "-s", "/etc/passwd", "work/sly"])).status == 0
    with pytest.raises(ArchiveRefused, match="leads out"):
        await lease.copy_out("work", tmp_path / "sly")
    assert not (tmp_path / "sly").exists()


async def test_a_machine_without_tar_says_so(tmp_path: Path) -> None:
    async with (
        hostler.embedded.open(fakes()) as fleet,
        fleet.lease("runners", timeout_ms=20_000) as lease,
    ):
        (tmp_path / "file").touch()
        with pytest.raises(CopyFailed, match="has no `mkdir`"):
            await lease.copy_in(tmp_path / "file", "file")
        with pytest.raises(CopyFailed, match="has no `tar`"):
            await lease.copy_out("file", tmp_path / "there")


def test_it_blocks_alike(tmp_path: Path) -> None:
    with (
        hostler.embedded.open_sync(local()) as fleet,
        fleet.lease("runners", timeout_ms=60_000) as lease,
    ):
        (tmp_path / "file").write_text("hello")
        lease.copy_in(tmp_path / "file", "there")
        assert lease.run(["cat", "there"]).stdout == b"hello"
        lease.copy_out("there", tmp_path / "back")
        assert (tmp_path / "back").read_text() == "hello"
