"""What this machine lets a process use."""

from __future__ import annotations

import os


def cores() -> int:
    """The number of processor cores that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
