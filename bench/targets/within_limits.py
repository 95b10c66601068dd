"""Target: of 100 files with a candidate at least 4 release standard errors within every limit, at most 5 are refused.

Each run draws a made file, makes the starting plan for public use, sweeps it, chooses by its rule and releases, as a user
would. Then, whatever happened, the strongest candidates are measured as at a release with random numbers of their own,
and their margin is taken from these measurements: the smallest of (limit - value) / standard error over all limits with
an error, where the value is the mean of the measurements. Files without a margin of 4 do not count.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import sdcmap as sm
from made_files import FILES, fully_synthetic
from resumable_runs import Facts, Figure, Target, main, plan_seed, share_figure
from sdcmap.bundle.ledger_register import separate_state
from sdcmap.bundle.limit_checks import score_file
from sdcmap.bundle.procedure import Try, describe_try
from sdcmap.core import Estimate, Stream
from sdcmap.errors import Refused
from sdcmap.explore.starting_plan import starting_plan
from sdcmap.study.profiles import Profile, find_profile
from sdcmap.workflow import choose, write_release

RUNS, MAX_SHARE = 100, 5 / 100
ROWS = 500  # a sweep of 1,000 rows takes four times as long, most of it for one-to-one links
MARGIN = 4.0  # standard errors of a release
MEASUREMENTS = 2  # of each candidate, for its margin
PROFILE = "public-use"
FILE = FILES[0]


def run(number: int, seed: int, rows: int = ROWS, measurements: int = MEASUREMENTS) -> Facts:
    """Return whether a made file was refused, why, and the largest margin of its strongest candidates."""
    data, profile = FILE.read(FILE.frame(rows, np.random.default_rng(seed))), find_profile(PROFILE)
    plan = starting_plan(data, profile).bind_seed(plan_seed(seed))
    tries: list[Try] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        sm.sweep(data, plan, home / "study", workers=1, progress=lambda done, total: None)
        with sm.Study.open(home / "study") as study:
            choice = choose(study)
            reason = ""
            try:
                with separate_state(home / "state"):
                    write_release(study, choice, home / "public", on_try=tries.append, ledger=home / "ledger")
            except Refused as refused:
                reason = str(refused)
            eligible = [plan.find(name).method for name in choice.candidates[: len(plan.policy.try_errors)]]
    methods = list(dict.fromkeys([*eligible, *strongest_synthesis(plan, data)]))
    margins = {
        method.text: find_margin(data, method, profile, seed, measurements if method in eligible else 1)
        for method in methods
    }
    best = max(margins, key=lambda text: margins[text][0])
    return {
        "refused": bool(reason), "reason": reason, "tries": [describe_try(one) for one in tries],
        "margin": margins[best][0], "nearest": margins[best][1], "method": best,
    }  # fmt: skip


def strongest_synthesis(plan: sm.Plan, data: sm.Microdata) -> list[sm.Method]:
    """Return the fully synthetic file of the plan with the largest leaves."""
    found = [(step.leaf, method) for method in plan.all_methods if (step := fully_synthetic(method, data))]
    return [max(found, key=lambda pair: pair[0])[1]] if found else []


def find_margin(
    data: sm.Microdata, method: sm.Method, profile: Profile, seed: int, measurements: int
) -> tuple[float, str]:
    """Return the smallest margin of a method over all limits, in release standard errors, and the limit that has it."""
    limits = profile.for_rows(len(data)).measures(data).limits
    streams = [Stream.of_seed(seed, f"margin {number}") for number in range(measurements)]
    score = partial(score_file, list(limits), data)
    files = [score(method.apply(data, stream), stream.child("scores"), method) for stream in streams]
    margins = {}
    for measure, *rows in zip(limits, *files, strict=True):
        estimates = [row.outcome for row in rows if isinstance(row.outcome, Estimate)]
        if estimates:
            gap = limits[measure] - float(np.mean([one.value for one in estimates]))
            error = float(np.mean([one.se or 0.0 for one in estimates]))
            margins[measure.text] = gap / error if error else math.copysign(1e9, gap)
        elif any(row.status != "unpaired" for row in rows):
            margins[measure.text] = -1e9  # a limit that has no value is met by no file
    nearest = min(margins, key=lambda text: margins[text])
    return round(margins[nearest], 3), nearest


def find_figures(lines: Sequence[Facts]) -> Iterator[Figure]:
    """Yield the share of refusals of the files that have a candidate with the margin."""
    counted = [line for line in lines if line["margin"] >= MARGIN]
    refused, without = sum(line["refused"] for line in counted), len(lines) - len(counted)
    note = f"{without} files have no such candidate; {sum(line['refused'] for line in lines)} of all were refused"
    if counted:
        yield share_figure("refusals", refused, len(counted), MAX_SHARE, note)
    else:
        print(f"No file has a candidate with this margin: {note}.")


TARGET = Target(__doc__, run, find_figures, RUNS)

if __name__ == "__main__":
    raise SystemExit(main(TARGET))
