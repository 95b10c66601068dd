"""The machine: how many cores this process may use."""

from __future__ import annotations

import os


def cores() -> int:
    """Return the number of cores that this process may use.

    The best available call depends on the Python version and the operating system.
    """
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
