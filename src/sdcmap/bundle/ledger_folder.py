"""The folder of a ledger: where ledgers are searched, the files of one, and how one is set aside."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sdcmap.bundle import ledger_register
from sdcmap.bundle.ledger_key import KEY_NAME
from sdcmap.data.private_folder import STAGING_PREFIX
from sdcmap.errors import SdcmapError

DATABASE_NAME, LOCK_NAME = "ledger.sqlite", "lock"
OWN_FILES = (KEY_NAME, DATABASE_NAME, f"{DATABASE_NAME}-journal")
ASIDE_PREFIX = "aside-"  # of folders with a ledger in whose place a new one was started


def ledger_folder(folder: Path | None) -> Path:
    """Return the folder that was named, or the default one."""
    return Path(folder) if folder else next(default_folders())


def default_folders() -> Iterator[Path]:
    """Yield the folders where a ledger is searched when none is named; a new one is created in the first."""
    if stated := os.environ.get("SDCMAP_LEDGER"):
        yield Path(stated)
    for state in ledger_register.state_folders():
        yield state / "ledger"


def has_ledger(folder: Path) -> bool:
    """Return whether a folder contains a ledger, or what is left of one."""
    return any((folder / name).exists() for name in (KEY_NAME, DATABASE_NAME))


def check_files(folder: Path) -> None:
    """Check that a folder for a ledger contains no files of others."""
    try:
        names = [path.name for path in folder.iterdir()] if folder.exists() else []
    except OSError as error:
        raise SdcmapError(f"the ledger {folder} cannot be read ({error.strerror}).") from None
    own = (LOCK_NAME, *OWN_FILES)
    if any(name not in own and not name.startswith((STAGING_PREFIX, ASIDE_PREFIX)) for name in names):
        raise SdcmapError(f"{folder} is not empty and has no ledger key. Name another folder, or restore the key.")


def set_aside(folder: Path) -> Path:
    """Move the files of a ledger to a new folder within its own, and return it."""
    aside = Path(tempfile.mkdtemp(prefix=ASIDE_PREFIX, dir=folder))
    for path in (folder / name for name in OWN_FILES):
        if path.exists():
            path.rename(aside / path.name)
    return aside
