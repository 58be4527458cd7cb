"""Archives of what is copied to and from nodes: made of ours, and unpacked without trusting theirs.

A node runs the work of others, so what it sends is taken apart by hand: files and folders first,
into a fresh folder in which there is no link yet, so that nothing is written through one; then
the links, of which none may lead out; devices, sockets and the like never.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import IO, Final

from hostler.base.errors import Failed, Rejected

ENTRIES_MAX: Final = 200_000
"""Files, folders and links of one copy: a checkout with its dependencies has fewer."""

ROOT: Final = "copied"
"""What the one thing in an archive of ours is called."""


class ArchiveRefused(Failed):
    """What a node sent is not unpacked."""


def pack(source: Path, name: str, into: IO[bytes], bytes_max: int) -> None:
    """Write a file or a folder as an archive; the one thing in it has the given name.

    Raises:
        Rejected: It is not there, cannot be read, holds what is no file, folder or link, or is
            too large.
    """
    left_bytes, left_count = bytes_max, ENTRIES_MAX

    def taken(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        nonlocal left_bytes, left_count
        left_bytes -= entry.size
        left_count -= 1
        if left_bytes < 0 or left_count < 0:
            told = f"{source} is larger than {bytes_max} bytes or {ENTRIES_MAX} entries"
            raise Rejected("copy_too_large", told)
        if not (entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()):
            told = f"{source} holds {entry.name}, which is no file, folder or link"
            raise Rejected("copy_source_invalid", told)
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    try:
        with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT) as archive:
            archive.add(source, name, filter=taken)
            if not archive.getmembers():
                told = f"{source} is no file or folder"
                raise Rejected("copy_source_invalid", told)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise Rejected("copy_source_invalid", f"cannot read {error.filename}: {why}") from error


def unpack(archive: IO[bytes], target: Path, bytes_max: int) -> None:
    """Put the one thing in an archive where it shall be, whole or not at all as far as that goes.

    A folder that is there already gets what is in the archive's, and keeps the rest.

    Raises:
        ArchiveRefused: It is broken, too large, leads out, or does not fit what is there.
        Failed: It cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".hostler-") as folder:
            _unpack_into(archive, Path(folder) / ROOT, bytes_max)
            _place(Path(folder) / ROOT, target)
    except tarfile.TarError as error:
        raise ArchiveRefused("copy_broken", f"the node sent no whole archive: {error}") from error
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise Failed("copy_not_written", f"cannot write {target}: {why}") from error


def _unpack_into(archive: IO[bytes], root: Path, bytes_max: int) -> None:
    links: list[tuple[Path, PurePosixPath, str]] = []
    modes: list[tuple[Path, int]] = []
    left_bytes, left_count, is_empty = bytes_max, ENTRIES_MAX, True
    with tarfile.open(fileobj=archive, mode="r:") as entries:
        for entry in entries:
            left_bytes -= entry.size
            left_count -= 1
            if left_bytes < 0 or left_count < 0:
                told = f"it is larger than {bytes_max} bytes or {ENTRIES_MAX} entries"
                raise ArchiveRefused("copy_too_large", told)
            inside = _inside(entry.name)
            path, is_empty = root / inside, False
            if entry.issym():
                _check_link(inside, entry.linkname)
                links.append((path, inside, entry.linkname))
            elif entry.isdir():
                path.mkdir(parents=True, exist_ok=True)
                modes.append((path, entry.mode & 0o777 | 0o700))
            elif entry.isreg() or entry.islnk():
                path.parent.mkdir(parents=True, exist_ok=True)
                if entry.islnk():
                    shutil.copy2(root / _inside(entry.linkname), path)
                else:
                    _write(entries, entry, path)
            else:
                told = f"{entry.name} is no file, folder or link"
                raise ArchiveRefused("copy_entry_refused", told)
    if is_empty:
        raise ArchiveRefused("copy_broken", "the node sent an empty archive")
    for path, _, leads_to in links:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(leads_to)
    for path, mode in reversed(modes):
        path.chmod(mode)


def _write(entries: tarfile.TarFile, entry: tarfile.TarInfo, path: Path) -> None:
    content = entries.extractfile(entry)
    if content is None:
        raise ArchiveRefused("copy_broken", f"{entry.name} has no content")
    with content, path.open("xb") as file:
        shutil.copyfileobj(content, file)
    path.chmod(entry.mode & 0o777 | 0o600)
    os.utime(path, (entry.mtime, entry.mtime))


def _inside(name: str) -> PurePosixPath:
    """Return an entry's path below the one thing that was asked for.

    Raises:
        ArchiveRefused: It leads elsewhere.
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise ArchiveRefused("copy_leads_out", f"{name!r} leads out of what was asked for")
    return PurePosixPath(*parts[1:])  # the first is the thing itself


def _check_link(inside: PurePosixPath, leads_to: str) -> None:
    """Make sure that a link stays inside, whatever the other links lead to.

    It may go up only at its beginning, and no further than to the root: folders on its way up are
    real, and every link that it may come through on its way down stays inside for the same reason.

    Raises:
        ArchiveRefused: It may lead out.
    """
    parts = [part for part in leads_to.split("/") if part not in ("", ".")]
    up_count = 0
    while up_count < len(parts) and parts[up_count] == "..":
        up_count += 1
    depth = len(inside.parts) - 1
    if leads_to.startswith("/") or depth < 0 or up_count > depth or ".." in parts[up_count:]:
        told = f"the link {inside} to {leads_to!r} leads out of what was asked for"
        raise ArchiveRefused("copy_leads_out", told)


def _place(found: Path, target: Path) -> None:
    """Move what was unpacked to where it shall be.

    Raises:
        ArchiveRefused: A link or something else is in its way.
    """
    there = _kind(target)
    if there == "folder" and _kind(found) == "folder":
        for child in sorted(found.iterdir()):
            _place(child, target / child.name)
    elif there in ("folder", "link") or (there and _kind(found) == "folder"):
        told = f"{target} is a {there}, which is not replaced by a {_kind(found)}"
        raise ArchiveRefused("copy_in_the_way", told)
    else:
        found.replace(target)


def _kind(path: Path) -> str:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(mode):
        return "link"
    return "folder" if stat.S_ISDIR(mode) else "file"
