"""The data folder: one agent, one identity, and an authority that ends with the boot."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.agent.clock import Clock
from hostler.agent.core.inputs import AllocationKey, LeaseKey
from hostler.agent.folder import DataFolder, write_whole
from hostler.agent.inventory import DeclaredShape, read_inventory
from hostler.base.errors import Rejected
from hostler.wire.agent import JoinResponse
from hostler.wire.work import Capability


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataFolder]:
    folder = DataFolder(tmp_path / "node")
    folder.open()
    yield folder
    folder.close()


def test_a_folder_is_for_one_agent(data: DataFolder) -> None:
    other = DataFolder(data.path)
    with pytest.raises(Rejected, match="another agent"):
        other.open()
    data.close()
    other.open()
    other.close()


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Rejected, match="cannot be used"):
        DataFolder(tmp_path / "file" / "node").open()


def test_an_identity_is_kept_for_its_owner_alone(data: DataFolder) -> None:
    assert data.read_identity() is None
    identity = JoinResponse(node_id="n-1", credential="secret")
    data.write_identity(identity)
    assert data.read_identity() == identity
    assert (data.path / "credential").stat().st_mode & 0o777 == 0o600
    (data.path / "credential").write_text("{")
    with pytest.raises(Rejected, match="damaged"):
        data.read_identity()


def test_a_repeated_join_uses_the_same_key(data: DataFolder) -> None:
    assert data.join_key() == data.join_key()


def test_each_start_is_a_new_incarnation(data: DataFolder) -> None:
    assert [data.raise_incarnation() for _ in range(3)] == [1, 2, 3]


def test_an_authority_is_read_back_and_means_nothing_after_a_reboot(data: DataFolder) -> None:
    clock = Clock()
    assert data.read_authority(clock) is None
    data.write_authority(clock.to_boot_ms(5_000_000_000_000))
    assert data.read_authority(clock) == 5_000_000_000_000
    write_whole(data.authority, b"0000000000000001 another-boot")
    assert data.read_authority(clock) is None


def test_an_authority_is_renewed_on_a_full_disk(
    data: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    data.write_authority(clock.to_boot_ms(5_000_000_000_000))
    (data.path / "authority.new").mkdir()  # so that no new file can be written
    data.write_authority(clock.to_boot_ms(5_000_000_000_001))
    assert data.read_authority(clock) == 5_000_000_000_001


def test_names_of_any_kind_make_one_folder_each(data: DataFolder) -> None:
    odd = AllocationKey("../live/encoder 0", 7)
    assert data.allocation(odd).parent == data.allocations
    lease = LeaseKey("lease/with-dash", 2)
    data.lease(lease).mkdir()
    assert data.found_leases() == [lease]


def test_what_is_declared_comes_before_what_is_measured() -> None:
    gpu = Capability(name="gpu", count=2)
    declared = DeclaredShape(capacity=3, cores_milli=1_500, memory_bytes=9, capabilities=[gpu])
    inventory = read_inventory(declared)
    assert (inventory.capacity, inventory.cores_milli, inventory.memory_bytes) == (3, 1_500, 9)
    assert inventory.capabilities == [gpu]
    measured = read_inventory(DeclaredShape())
    assert (measured.capacity or 0) >= 1
    assert (measured.memory_bytes or 0) > 2**20
    assert measured.devices == []
