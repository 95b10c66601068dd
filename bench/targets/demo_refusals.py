"""Target: `sdcmap demo` is run 200 times, each time with another seed, and no release is refused.

Each run is the demo of the command line up to its release. The seed, which the demo draws afresh, is set to one that
belongs to the number of the run, so that a refusal can be made again. The map and the report, which follow, are left out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from resumable_runs import Facts, Figure, Target, main, plan_seed, share_figure
from sdcmap import demo_run
from sdcmap.explore.starting_plan import starting_plan
from sdcmap.study.plan import Plan

RUNS, ROWS = 200, 1_500
RELEASED = "released with method note"  # in the line of a demo that released a file
REFUSED = "nothing was released"


def run(number: int, seed: int, rows: int = ROWS) -> Facts:
    """Return whether the demo released a file, and what it printed about its tries."""

    def plan_with_seed(*given: Any) -> Plan:
        return starting_plan(*given).bind_seed(plan_seed(seed))

    with tempfile.TemporaryDirectory() as folder, patch.object(demo_run, "starting_plan", plan_with_seed):
        printed = []
        for line in demo_run.run_demo(Path(folder) / "demo", rows):
            printed.append(line.replace(folder, ""))
            if RELEASED in line or REFUSED in line:
                return {"refused": REFUSED in line, "printed": printed}
    raise AssertionError("the demo says neither that a file was released nor that none was.")


def find_figures(lines: Sequence[Facts]) -> Iterator[Figure]:
    """Yield the share of refusals, and the share of demos that needed more than one try."""
    yield share_figure("refusals", sum(line["refused"] for line in lines), len(lines), 0.0)


TARGET = Target(__doc__, run, find_figures, RUNS)

if __name__ == "__main__":
    raise SystemExit(main(TARGET))
