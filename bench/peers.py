"""Run a task with another package, in its own environment: `.venv-peers/bin/python peers.py TASK FILE.csv`.

Prints seconds, peak memory and the answer as JSON. The seconds do not include importing the packages and reading the file.
"""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

BLOCKING_KEYS = ["Age", "WrkTyp", "Educ", "MarStat"]
COMPARED_KEYS = ["Race", "Hours"]


def pycanon_groups(frame: pd.DataFrame) -> tuple[float, list[int]]:
    from pycanon import anonymity

    start = time.perf_counter()
    k = anonymity.k_anonymity(frame, BLOCKING_KEYS)
    diversity = anonymity.l_diversity(frame, BLOCKING_KEYS, ["Income"])
    return time.perf_counter() - start, [int(k), int(diversity)]


def recordlinkage_pairs(frame: pd.DataFrame) -> tuple[float, list[int]]:
    import recordlinkage

    half = len(frame) // 2
    ours, theirs = frame.iloc[:half], frame.iloc[half:]
    start = time.perf_counter()
    index = recordlinkage.Index()
    index.block(BLOCKING_KEYS)
    pairs = index.index(ours, theirs)
    compare = recordlinkage.Compare()
    for name in COMPARED_KEYS:
        compare.exact(name, name)
    same = compare.compute(pairs, ours, theirs).sum(axis=1) == len(COMPARED_KEYS)
    linked = same[same].index.get_level_values(0).nunique()
    return time.perf_counter() - start, [int(linked), len(pairs)]


def splink_pairs(frame: pd.DataFrame) -> tuple[float, list[int]]:
    import splink.comparison_library as compared
    from splink import Linker, SettingsCreator, block_on
    from splink.internals.duckdb.database_api import DuckDBAPI

    logging.getLogger("splink").setLevel(logging.ERROR)
    frame = frame.assign(unique_id=range(len(frame)))
    half = len(frame) // 2
    settings = SettingsCreator(
        link_type="link_only", comparisons=[compared.ExactMatch(name) for name in COMPARED_KEYS],
        blocking_rules_to_generate_predictions=[block_on(*BLOCKING_KEYS)],
    )  # fmt: skip
    start = time.perf_counter()
    api = DuckDBAPI()
    halves = (("ours", frame.iloc[:half]), ("theirs", frame.iloc[half:]))
    both = [api.register(part, dataset_display_name=name) for name, part in halves]
    linker = Linker(both, settings, log_level=logging.ERROR)
    predicted = linker.inference.predict().as_duckdbpyrelation()
    both_same = " and ".join(f"gamma_{name} = 1" for name in COMPARED_KEYS)
    linked = predicted.filter(both_same).aggregate("count(distinct unique_id_l)").fetchall()[0][0]
    pairs = predicted.aggregate("count(*)").fetchall()[0][0]
    return time.perf_counter() - start, [int(linked), int(pairs)]


if __name__ == "__main__":
    import pandas as pd

    task = globals()[sys.argv[1]]
    seconds, answer = task(pd.read_csv(sys.argv[2], dtype=str))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mb": peak, "answer": answer}))
