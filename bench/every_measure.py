"""Print the processor seconds of every measure on 50,000 records of 14 mixed columns, and the prediction of `sdcmap check`.

    python bench/every_measure.py [NAME ...]

Each measure has the parameters of tests/testing/test_revisions.py. A measure is stopped after MAX_SECONDS.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.core.measure import Measure
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SdcmapError
from sdcmap.study.cost import estimate_seconds

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "testing"))
from test_revisions import FIELDS

RECORDS, MAX_SECONDS = 50_000, 60
NUMBERS = ("wage", "rent", "hours", "gain", "assets")
METHOD = sm.Chain([sm.Swap(on=["sex", "region"], rate=0.05), sm.Noise(on=NUMBERS, variance=0.1)])
STREAM = Stream.of_seed(1, "every measure")


def people(n: int) -> Microdata:
    """Return persons in households of two, with seven categories, five amounts and a weight."""
    rng = np.random.default_rng(1)
    household, wage = np.arange(n) // 2, np.round(rng.lognormal(3, 1, n), 2)
    texts = {"region": "abcdefghij", "sex": "fm", "educ": "abcdefghijklmnop", "marital": "smwd"}
    frame = {name: rng.choice(list(letters), n) for name, letters in texts.items()}
    amounts = {
        "wage": wage,
        "rent": np.round(wage * rng.lognormal(-1, 0.5, n), 2),
        "hours": rng.integers(0, 60, n) + 0.0,
    }
    amounts |= {"gain": np.round(rng.lognormal(4, 1.5, n)), "assets": np.round(rng.lognormal(8, 2, n), 1)}
    others = {
        "household": household,
        "area": rng.choice(list("xyzuvw"), n // 2 + 1)[household],
        "weight": 1.0 + rng.integers(0, 3, n),
    }
    others |= {"age": rng.integers(16, 90, n).astype(str), "job": rng.integers(0, 40, n).astype(str)}
    keys = [*texts, "age", "job"]
    table = pl.DataFrame(frame | amounts | others)
    return sm.read(table, keys=keys, numeric=NUMBERS, weight="weight", household="household")


def seconds(measure: Measure, data: Microdata, masked: Microdata) -> float:
    """Return the processor seconds of one score; infinite beyond MAX_SECONDS."""
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    start = time.process_time()
    try:
        measure.apply(data, masked, STREAM.rng())
    except TimeoutError:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - start


def stop_measure(*_: object) -> None:
    raise TimeoutError


def main(names: list[str]) -> None:
    signal.signal(signal.SIGVTALRM, stop_measure)
    data, few = people(RECORDS), people(1_200)
    masked, small = METHOD.apply(data, STREAM), METHOD.apply(few, STREAM)
    print("| measure | processor seconds | predicted |\n|---|---|---|")
    for cls in (*sm.risk.RISKS, *sm.utility.UTILITIES):
        if names and cls.__name__ not in names:
            continue
        try:
            measure = cls(**FIELDS.get(cls.__name__, {})).for_informed_attacker(METHOD)
            measure.apply(few, small, STREAM.rng())  # compiles the kernels
            # a plan has two candidates: the method, and the unmasked file
            predicted = estimate_seconds(data, sm.Plan(METHOD, [measure], 1, seed=0)) / 2
            print(f"| `{cls.__name__}` | {seconds(measure, data, masked):.2g} | {predicted:.2g} |", flush=True)
        except (SdcmapError, TypeError) as reason:
            print(f"| `{cls.__name__}` | | {type(reason).__name__} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
