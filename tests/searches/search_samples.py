"""A small search that several tests share. As a script it runs the search and can kill itself on the way."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import sdcmap as sm
from sdcmap.data.microdata import Microdata
from sdcmap.risk import ExactMatch
from sdcmap.study.folder import Study
from sdcmap.utility import QueryError

KEYS, NUMBERS = ("Age", "Educ", "Sex"), ("wage", "total")
OWN = sm.Chain((sm.PRAM(KEYS, 0.6, alpha=1.0), sm.RankSwap(NUMBERS, 0.2)))
FOUND = ExactMatch(on=KEYS, k=3)
QUERIES = QueryError(queries=100)
LIMIT = 0.1
BUDGET = 32


def people_of() -> Microdata:
    return sm.demo.population(120, seed=3).only([*KEYS, *NUMBERS])


def plan_of(**parts: Any) -> sm.Plan:
    given: dict[str, Any] = {"methods": [OWN], "measures": [FOUND, QUERIES, sm.Hellinger(on=KEYS)], "seed": 5}
    given |= {"rule": sm.Threshold(risk=LIMIT), "search": {"methods": ["PRAM", "RankSwap", "Noise"]}}
    return sm.Plan(**{**given, **parts})


def die(rows: int, calls: int) -> None:
    """Kill this process this many Python calls after this many rows are stored."""
    add = Study.add

    def count(*call: object) -> None:
        nonlocal calls
        calls -= 1
        if calls < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(study: Study, made: Any) -> None:
        nonlocal rows
        add(study, made)
        rows -= len(made)
        if rows <= 0:
            sys.setprofile(count)

    Study.add = counted  # type: ignore[method-assign]


if __name__ == "__main__":
    folder, rows, calls = sys.argv[1:]
    die(int(rows), int(calls))
    sm.search(people_of(), plan_of(), BUDGET, study=folder, workers=1)
