"""What a node sends is unpacked without being trusted."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from hostler.base.errors import Rejected
from hostler.client.archives import ArchiveRefused, pack, unpack

MANY = 1_000_000


def an_archive(*entries: tuple[str, bytes | str, bytes]) -> io.BytesIO:
    """Write an archive of (name, content or where it leads to, type)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content, kind in entries:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            if isinstance(content, str):
                entry.linkname = content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    out.seek(0)
    return out


FILE, LINK, HARD, FOLDER, FIFO, DEVICE = (
    tarfile.REGTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.DIRTYPE,
    tarfile.FIFOTYPE,
    tarfile.CHRTYPE,
)


def test_a_tree_comes_back_as_it_was(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "deep" / "empty").mkdir(parents=True)
    (tree / "run.sh").write_text("#!/bin/sh\n")
    (tree / "run.sh").chmod(0o750)
    (tree / "deep" / "ü\nname").write_bytes(b"\0" * 100_000)
    (tree / "deep" / "link").symlink_to("../run.sh")
    os.link(tree / "run.sh", tree / "same.sh")
    out = io.BytesIO()
    pack(tree, "x", out, MANY)
    out.seek(0)
    unpack(out, tmp_path / "new" / "place", MANY)
    place = tmp_path / "new" / "place"
    assert (place / "deep" / "ü\nname").read_bytes() == b"\0" * 100_000
    assert (place / "run.sh").stat().st_mode & 0o777 == 0o750
    assert (place / "same.sh").read_text() == "#!/bin/sh\n"
    assert (place / "deep" / "link").readlink() == Path("../run.sh")
    assert (place / "deep" / "empty").is_dir()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["place"]


@pytest.mark.parametrize(
    "entries",
    [
        [("x/../../evil", b"!", FILE)],
        [("/etc/evil", b"!", FILE)],
        [("x", b"", FOLDER), ("x/up", "..", LINK)],
        [("x", b"", FOLDER), ("x/etc", "/etc", LINK)],
        [("x/a", ".", LINK), ("x/b", "a/..", LINK)],
        [("x/d", b"", FOLDER), ("x/d/up", "../..", LINK)],
        [("x", "elsewhere", LINK)],
        [("x/hard", "x/../../../etc/passwd", HARD)],
        [("x/pipe", b"", FIFO)],
        [("x/device", b"", DEVICE)],
    ],
)
def test_nothing_leads_out(tmp_path: Path, entries: list[tuple[str, bytes | str, bytes]]) -> None:
    inner = tmp_path / "inner"
    with pytest.raises(ArchiveRefused):
        unpack(an_archive(*entries), inner / "place", MANY)
    assert list(inner.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]


def test_a_link_is_never_written_through(tmp_path: Path) -> None:
    """Links come last, whatever the order; a file in a link's place is a contradiction."""
    (tmp_path / "secret").mkdir()
    sly = an_archive(("x", b"", FOLDER), ("x/l", "d", LINK), ("x/l/evil", b"!", FILE))
    with pytest.raises(Exception, match=r"exists|cannot write"):
        unpack(sly, tmp_path / "place", MANY)
    # One of our own links in the way is not followed either.
    place = tmp_path / "there"
    place.mkdir()
    (place / "d").symlink_to(tmp_path / "secret")
    with pytest.raises(ArchiveRefused, match="is a link"):
        unpack(an_archive(("x/d/evil", b"!", FILE)), place, MANY)
    assert list((tmp_path / "secret").iterdir()) == []


def test_what_is_there_is_kept_unless_it_comes_anew(tmp_path: Path) -> None:
    place = tmp_path / "place"
    (place / "d").mkdir(parents=True)
    (place / "d" / "old").write_text("old")
    (place / "both").write_text("old")
    unpack(an_archive(("x/d/new", b"new", FILE), ("x/both", b"new", FILE)), place, MANY)
    assert (place / "d" / "old").read_text() == "old"
    assert (place / "d" / "new").read_text() == "new"
    assert (place / "both").read_text() == "new"
    with pytest.raises(ArchiveRefused, match="is a folder"):
        unpack(an_archive(("x", b"file", FILE)), place, MANY)
    with pytest.raises(ArchiveRefused, match="is a file"):
        unpack(an_archive(("x/deep", b"", FOLDER)), place / "both", MANY)


def test_sizes_are_bounded_both_ways(tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(b"x" * 2_000)
    with pytest.raises(Rejected, match="larger than 1000 bytes"):
        pack(big, "x", io.BytesIO(), 1_000)
    with pytest.raises(ArchiveRefused, match="larger than 1000 bytes"):
        unpack(an_archive(("x", b"x" * 2_000, FILE)), tmp_path / "place", 1_000)
    with pytest.raises(ArchiveRefused, match="empty"):
        unpack(an_archive(), tmp_path / "place", 1_000)
    with pytest.raises(ArchiveRefused, match="no whole archive"):
        unpack(io.BytesIO(b"what is this?" * 100), tmp_path / "place", MANY)
    cut = an_archive(("x", b"x" * 20_000, FILE)).getvalue()[:8_000]
    with pytest.raises(ArchiveRefused, match="no whole archive"):
        unpack(io.BytesIO(cut), tmp_path / "place", MANY)


def test_what_cannot_be_sent_is_said(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="no such file"):
        pack(tmp_path / "nothing", "x", io.BytesIO(), MANY)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Rejected, match="no file, folder or link"):
        pack(tmp_path / "pipe", "x", io.BytesIO(), MANY)
