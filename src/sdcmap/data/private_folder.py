"""Private temporary folders, such as for a copy of the data, and files that are written completely or not at all.

A folder is removed when its run ends. If the process is killed, the next run that creates a folder in the same location
removes it. A lock shows that the process of a folder is alive; folders of living processes and of other users are never
touched.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from sdcmap.errors import SdcmapError

TEMPORARY_PREFIX = "sdcmap-"  # of folders in the system's temporary folder
STAGING_PREFIX = ".part-"  # of folders beside the file that is being written
LOCK_NAME, CONTENT_NAME = "lock", "kept"
WINDOWS = os.name == "nt"
CLAIMED_NAME = "promised"  # present while a ledger may still ask whether the content was renamed to its final name


@contextmanager
def private_folder(home: Path | None = None) -> Iterator[Path]:
    """Create an empty folder that only its owner can read, below `home` (None: the temporary folder).

    It is removed after the block. If the block renames it, it stays. In the main thread SIGTERM ends the block like an
    exception, unless the process handles SIGTERM itself.
    """
    remove_abandoned(home)
    folder, lock = _create(*_location(home))
    try:
        with _exit_on_sigterm():
            yield folder / CONTENT_NAME
    finally:
        shutil.rmtree(folder / CONTENT_NAME, ignore_errors=True)
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(home: Path | None = None) -> None:
    """Remove the private folders in `home` (None: the temporary folder) whose processes have ended."""
    parent, prefix = _location(home)
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Let SIGTERM raise SystemExit in this block, so that the private folder is removed before the process ends."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _location(home: Path | None) -> tuple[Path, str]:
    return (Path(tempfile.gettempdir()), TEMPORARY_PREFIX) if home is None else (home, STAGING_PREFIX)


def _create(parent: Path, prefix: str) -> tuple[Path, BaseFileLock]:
    """Create a folder, and hold a lock that shows that its process is alive."""
    while True:
        folder = parent / f"{prefix}{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        lock = FileLock(folder / LOCK_NAME, timeout=0, mode=0o600)
        # Another process may remove the new folder before the lock is held: then try again.
        with suppress(Timeout, FileNotFoundError):
            lock.acquire()
            if (folder / LOCK_NAME).exists():
                (folder / CONTENT_NAME).mkdir(mode=0o700)
                return folder, lock
            lock.release()


def _remove_if_abandoned(folder: Path) -> None:
    facts = folder.lstat()
    ours = not hasattr(os, "geteuid") or (facts.st_uid == os.geteuid() and not stat.S_IMODE(facts.st_mode) & 0o077)
    # Only folders of this user without access for others: nobody else can have created the lock in it.
    if not ours or not (folder / LOCK_NAME).is_file():
        return
    try:
        with FileLock(folder / LOCK_NAME, timeout=0):
            if (folder / CLAIMED_NAME).exists():
                for path in (folder / CONTENT_NAME).iterdir():
                    path.unlink()
                return
            shutil.rmtree(folder / CONTENT_NAME, ignore_errors=True)
    except Timeout:  # its process is alive
        return
    shutil.rmtree(folder, ignore_errors=True)


# Atomic writes: write to a private folder first, then rename, so that a full disk or a kill leaves the old file intact.
# Files that show data are private: only their owner may read them (mode 0600).


@contextmanager
def staging_path(path: Path, *, private: bool = True) -> Iterator[Path]:
    """Yield a path in a private folder to write `path` to, and files beside it; they are moved into place at the end."""
    path = path.resolve()
    if path.exists() and not path.is_file():  # such as /dev/stdout
        yield path
        return
    with private_folder(path.parent) as folder:
        yield folder / path.name
        for file in folder.iterdir():
            if private:
                file.chmod(0o600)
            file.replace(path.with_name(file.name))


def write_atomically(path: Path, content: str | bytes, *, private: bool = True, durable: bool = False) -> Path:
    """Write a file completely or not at all; SdcmapError if it cannot be written.

    durable : return only after the file is on the disk, so that a power failure does not take it back.
    """
    try:
        with staging_path(path, private=private) as part:
            part.write_bytes(content.encode() if isinstance(content, str) else content)
            if durable:
                sync_to_disk(part)
        if durable:
            sync_to_disk(path.resolve().parent)
    except OSError as error:
        raise SdcmapError(f"{path} cannot be written ({error.strerror}).") from None
    return path


def sync_to_disk(path: Path) -> None:
    """Return after the content of a file, or the names in a folder, are on the disk."""
    if WINDOWS and path.is_dir():
        return  # Windows cannot open a folder
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
