"""Private folders for what a run puts aside, such as a copy of the data: they go with the run, whatever ends it.

A folder holds a lock for as long as its process lives. What a kill leaves has none, and is removed by the next run that
makes a folder in the same place. A living run's folder, and what is not ours, is never touched.
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

TEMPORARY, PART = "sdcmap-", ".part-"  # how names begin in the system's temporary folder, and elsewhere
LOCK, KEPT, PROMISED = "lock", "kept", "promised"  # PROMISED: a ledger will ask whether KEPT got its name


@contextmanager
def private_folder(home: Path | None = None) -> Iterator[Path]:
    """An empty folder that its owner alone can read, below `home` (None: the temporary folder); gone after the block.

    It may be renamed in the block, and then stays. SIGTERM ends the block as an exception does, in the main thread and
    where nobody else takes care of it.
    """
    remove_left(home)
    folder, lock = _born(*_place(home))
    try:
        with _ended_by_sigterm():
            yield folder / KEPT
    finally:
        shutil.rmtree(folder / KEPT, ignore_errors=True)
        lock.release()
        shutil.rmtree(folder, ignore_errors=True)


def remove_left(home: Path | None = None) -> None:
    """Remove the private folders in `home` (None: the temporary folder) whose processes are gone."""
    place, begin = _place(home)
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(begin) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_dead(Path(entry.path))


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """In this block SIGTERM ends the process as an exception does, not on the spot: what is put aside goes."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _place(home: Path | None) -> tuple[Path, str]:
    return (Path(tempfile.gettempdir()), TEMPORARY) if home is None else (home, PART)


def _born(place: Path, begin: str) -> tuple[Path, BaseFileLock]:
    """A new folder and the lock that says that its process lives."""
    while True:
        folder = place / f"{begin}{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        lock = FileLock(folder / LOCK, timeout=0, mode=0o600)
        with suppress(Timeout, FileNotFoundError):  # one who cleans up came between
            lock.acquire()
            if (folder / LOCK).exists():
                (folder / KEPT).mkdir(mode=0o700)
                return folder, lock
            lock.release()


def _remove_dead(folder: Path) -> None:
    facts = folder.lstat()
    ours = not hasattr(os, "geteuid") or (facts.st_uid == os.geteuid() and not stat.S_IMODE(facts.st_mode) & 0o077)
    if not ours or not (folder / LOCK).is_file():  # nobody else can have put a lock into it
        return
    try:
        with FileLock(folder / LOCK, timeout=0):
            if (folder / PROMISED).exists():
                for path in (folder / KEPT).iterdir():
                    path.unlink()
                return
            shutil.rmtree(folder / KEPT, ignore_errors=True)
    except Timeout:  # its process lives
        return
    shutil.rmtree(folder, ignore_errors=True)


# Files written whole or not at all: aside first, then renamed, so that a full disk or a kill leaves the old one.
#
# What shows data is private: its owner alone may read it (mode 0600).


@contextmanager
def aside(path: Path, *, private: bool = True) -> Iterator[Path]:
    """Where to write the file `path`, and others beside it: in a private folder; its files take their places at the end."""
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


def write_whole(path: Path, content: str | bytes, *, private: bool = True) -> Path:
    """Write a file, whole or not at all; SdcmapError where the disk does not take it."""
    try:
        with aside(path, private=private) as part:
            part.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise SdcmapError(f"{path} cannot be written ({error.strerror}).") from None
    return path
