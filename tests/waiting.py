"""Wait for an event instead of a time, and list child processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sizes import GUARD

Event = TypeVar("Event")


def until(event: Callable[[], Event], what: str = "the event") -> Event:
    """Call a function until it returns true; the limit of minutes only prevents hanging."""
    end = time.monotonic() + GUARD
    while not (answer := event()):
        assert time.monotonic() < end, f"{what} never came"
        time.sleep(0.05)
    return answer


def children(pid: int) -> list[int]:
    """Return all descendants of the process `pid`."""
    below = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            number, parent = int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                below += [number, *children(number)]
    return below
