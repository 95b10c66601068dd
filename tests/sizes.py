"""How much the long tests do: every promise once in `make test`, all of it in `make soak` (SDCMAP_SOAK=1).

Work is counted, never timed: a busy machine does the same cases, kills and draws as an idle one.
"""

from __future__ import annotations

import os

IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
SOAK = os.environ.get("SDCMAP_SOAK", "") not in ("", "0")


def size(usual: int, soak: int) -> int:
    return soak if SOAK else usual


KILLS = size(2, 25)  # drivers and workers killed, for each of two engines
RELEASE_KILLS = size(1, 30)  # releases killed, besides the one killed at the rename
FUZZ_CASES = size(60, 20_000)  # damaged files and structured nonsense a reader: minutes each in a soak
GUARD = 600  # seconds until a test that waits for an event gives up: against hanging alone, it decides nothing
