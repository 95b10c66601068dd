"""Runs for the tests of resumable scripts; a module of its own, because every process of a script imports it."""

from __future__ import annotations

import time
from typing import Any


def double(number: int, seed: int) -> dict[str, Any]:
    """Return twice the number; run 3 fails."""
    if number == 3:
        raise ValueError("run 3 fails")
    return {"doubled": 2 * number}


def sleep(number: int, seed: int) -> dict[str, Any]:
    """Run 0 ends at once, all others after a minute."""
    time.sleep(0 if number == 0 else 60)
    return {}
