"""Waiting for an event, not for a time; and processes below a process."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sizes import GUARD

Event = TypeVar("Event")


def until(event: Callable[[], Event], what: str = "the event") -> Event:
    """Ask until the answer is true; the guard of minutes is against hanging alone."""
    end = time.monotonic() + GUARD
    while not (answer := event()):
        assert time.monotonic() < end, f"{what} never came"
        time.sleep(0.05)
    return answer


def children(pid: int) -> list[int]:
    """Every process below `pid`, whatever their depth."""
    below = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            number, parent = int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                below += [number, *children(number)]
    return below
