"""What a sweep will cost: methods and measures timed on a few of the records, and their growth taken to all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

from sdcmap.core.making import Folds, made_without
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SdcmapError
from sdcmap.study.plan import Plan

T = TypeVar("T")
ROWS = 1_000  # on which each is timed
METHODS = 8  # that are timed, spread over the plan
DRAWS = Stream.of_seed(0, "cost")
SECONDS = 1.5  # for all of it; what is not reached costs what the others do in the mean


def cost_guess(data: Microdata, plan: Plan, limit: float = SECONDS) -> float:
    """Seconds that one worker would need; a guess, after at most about `limit` seconds, whatever the plan costs.

    A method or measure that takes t seconds on ROWS records takes t (n / ROWS)^growth on n, with the growth that its class
    states: 1 where each record is looked at on its own, 2 where each pair is. Releases that measures ask to be made again
    without some of the people are counted with the method.
    """
    ends = time.perf_counter() + limit
    few = _evenly(data)
    methods = plan.expanded[:: max(1, len(plan.expanded) // METHODS)]
    making: list[float] = []
    masked, known = few.change(None, {}), methods[0]
    for method in methods:
        if making and time.perf_counter() > ends - limit / 2:
            break
        try:
            made, seconds = _timed(partial(method.apply, few, DRAWS))
        except SdcmapError:  # it cannot be made of so few
            continue
        masked, known = made, method
        again = sum(folds.times * (1 - folds.held_out) for folds in _asked(plan, method, made))
        making.append(seconds * method.cost_ratio(len(few), len(data)) * (1 + again))
    scoring: list[float] = []
    for measure in plan.measures:
        if scoring and time.perf_counter() > ends:
            break
        informed = measure.knowing(known)
        try:
            folds = informed.makings(masked)
            makings = made_without(few, known, DRAWS, folds) if folds else ()
            _, seconds = _timed(partial(informed.apply, few, masked, DRAWS.rng(), makings))
        except SdcmapError:
            continue
        scoring.append(seconds * informed.cost_ratio(len(few), len(data)))
    each = float(np.mean(making or [0.0])) + float(np.mean(scoring or [0.0])) * len(plan.measures)
    return plan.count * each


def makings_of(data: Microdata, plan: Plan) -> int:
    """How many releases without some of the people a sweep makes beside the candidates, for measures that ask for them."""
    counts = (
        (plan.replicates if method.random else 1) * sum(folds.times for folds in _asked(plan, method, data))
        for method in plan.expanded
    )
    return sum(counts)


def _asked(plan: Plan, method: Method, masked: Microdata) -> set[Folds]:
    """The makings that the measures of a plan ask for, beside a file that this method made."""
    asked = (measure.knowing(method).makings(masked) for measure in plan.measures)
    return {folds for folds in asked if folds is not None}


def _evenly(data: Microdata) -> Microdata:
    """Some records, evenly over the file, as a file of its own."""
    rows = np.unique(np.linspace(0, len(data) - 1, min(ROWS, len(data))).astype(np.int64))
    part = data.take(rows)
    return Microdata(part.schema, part.columns)


def _timed(run: Callable[[], T]) -> tuple[T, float]:
    """What it gives, and the seconds of the second run: without compilation and first views."""
    run()
    start = time.perf_counter()
    found = run()
    return found, time.perf_counter() - start
