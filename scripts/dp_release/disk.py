"""Write files atomically and durably, readable by their owner alone."""

import contextlib
import os
import stat
from pathlib import Path

from dp_privacy.errors import Refused

NEW = ".new"  # suffix of unfinished files


def sync(folder: Path) -> None:
    """Flush a folder's entries to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def private_folder(path: Path) -> None:
    """Make or check a private folder. Raises `Refused` if it is not private, or its parent is missing."""
    try:
        path.mkdir(mode=0o700)
        sync(path.parent)
    except FileExistsError:
        pass
    except FileNotFoundError:
        raise Refused(f"there is no folder {path.parent} for {path.name}: make it first") from None
    check_private(path)


def check_private(path: Path) -> None:
    """Raise `Refused` unless a file or folder is this user's and private."""
    status = path.lstat()
    if status.st_uid != os.geteuid():
        raise Refused(f"{path} belongs to another user")
    if stat.S_IMODE(status.st_mode) & 0o077:
        what = "700" if stat.S_ISDIR(status.st_mode) else "600"
        raise Refused(f"{path} may be read or changed by others: `chmod {what} {path}`")


def read_private(path: Path) -> bytes:
    """The content of a file. Raises `Refused` unless it is private."""
    check_private(path)
    return path.read_bytes()


def place(path: Path, content: bytes, mode: int) -> None:
    """Write a new file and flush it to the disk."""
    prepare(path, content, mode)
    settle(path)


def prepare(path: Path, content: bytes, mode: int) -> None:
    """Write a new file to disk under a temporary name."""
    new = prepared(path)
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        written = 0
        while written < len(content):
            written += os.write(handle, content[written:])
        os.fchmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)
    sync(path.parent)


def settle(path: Path) -> None:
    """Give a file from `prepare` its final name."""
    path.hardlink_to(prepared(path))  # a rename would replace an existing file
    prepared(path).unlink()
    sync(path.parent)


def prepared(path: Path) -> Path:
    """The temporary name of an unfinished file."""
    return path.with_name(path.name + NEW)


def destroy(path: Path) -> None:
    """Overwrite and remove a key file and its unfinished copy. Disks and backups may still hold the key."""
    for file in (path, prepared(path)):
        try:
            size = file.lstat().st_size
        except FileNotFoundError:
            continue
        with file.open("r+b") as handle:
            handle.write(bytes(size))
            handle.flush()
            os.fsync(handle.fileno())
        file.unlink()
        sync(path.parent)
