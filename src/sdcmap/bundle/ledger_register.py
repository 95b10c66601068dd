"""The ledgers that this user has released with: a private file for each, by its id, in the user's state folder.

A file states the folder of the ledger and how far its chain had come. So a release searches every ledger of the user, and
notices where one of them is gone, was set back or was replaced by another.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from sdcmap.bundle.ledger_chain import Head
from sdcmap.data.private_folder import write_atomically
from sdcmap.errors import SdcmapError

REGISTER_NAME = "ledgers"  # of the folder within a state folder
_separate_state: ContextVar[Path | None] = ContextVar("_separate_state", default=None)


class Registered(NamedTuple):
    """A ledger of this user: its folder, and how far its chain had come."""

    folder: Path
    head: Head


@contextmanager
def separate_state(folder: Path) -> Iterator[None]:
    """Use this state folder alone in the block, for releases of made-up people: no other release knows of them."""
    token = _separate_state.set(folder)
    try:
        yield
    finally:
        _separate_state.reset(token)


def state_folders() -> Iterator[Path]:
    """Yield the user's state folders, as the system knows them, whatever $HOME says; a new one is created in the first."""
    if separate := _separate_state.get():
        yield separate
        return
    state = os.environ.get("XDG_STATE_HOME")
    if state:
        yield Path(state) / "sdcmap"
    yield Path.home() / ".local" / "state" / "sdcmap"
    with suppress(ImportError, KeyError):
        import pwd  # not on Windows

        yield Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local" / "state" / "sdcmap"


def registered_ledgers() -> list[Registered]:
    """Return every registered ledger; raise SdcmapError where a file of the register cannot be read."""
    return list(dict.fromkeys(_read(path) for path in _files()))


def register_ledger(folder: Path, head: Head) -> None:
    """Register a ledger in place of what was registered for its folder; warn where that is not possible."""
    home, folder = next(state_folders()) / REGISTER_NAME, folder.resolve()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in _files():
            if path.stem != head.ledger and _read(path).folder == folder:
                path.unlink()
        facts = {"folder": str(folder), "entries": head.entries, "head": head.digest}
        write_atomically(home / f"{head.ledger}.json", json.dumps(facts))
    except (OSError, SdcmapError):
        warnings.warn(f"The ledger {head.ledger} could not be registered in {home}.", stacklevel=2)


def forget_ledger(name: str) -> None:
    """Remove a ledger, by its id, from the register."""
    paths = [path for path in _files() if path.stem == name]
    if not paths:
        raise SdcmapError(f"no ledger {name!r} is registered.")
    for path in paths:
        path.unlink()


def _files() -> list[Path]:
    homes = (state / REGISTER_NAME for state in dict.fromkeys(state_folders()))
    return [path for home in homes if home.is_dir() for path in sorted(home.glob("*.json"))]


def _read(path: Path) -> Registered:
    try:
        facts = json.loads(path.read_text())
        return Registered(Path(facts["folder"]), Head(path.stem, int(facts["entries"]), str(facts["head"])))
    except (OSError, ValueError, KeyError, TypeError):
        advice = f"Run `sdcmap ledger forget {path.stem}`, and name that ledger in the next release"
        raise SdcmapError(f"{path} of the register of ledgers is damaged. {advice}.") from None
