"""What a sweep will cost: methods and measures timed on a few of the records, and their growth taken to all of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np

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
    """Seconds that one core would need; a guess, after at most about `limit` seconds, whatever the plan costs.

    A measure that is dear states its seconds by a formula (`Measure.seconds`), which was right within a factor of 3 on
    files of 1,000 to 20,000 mixed records. Others, and methods, are timed: what takes t seconds on ROWS records takes
    t (n / ROWS)^growth on n, with the growth that its class states: 1 where each record is looked at on its own, 2 where
    each pair is.
    """
    ends = time.process_time() + limit
    few = _evenly(data)
    methods = plan.expanded[:: max(1, len(plan.expanded) // METHODS)]
    making: list[float] = []
    masked, known = few.change(None, {}), methods[0]
    for method in methods:
        if making and time.process_time() > ends - limit / 2:
            break
        try:
            made, seconds = _timed(partial(method.apply, few, DRAWS))
        except SdcmapError:  # it cannot be made of so few
            continue
        masked, known = made, method
        making.append(seconds * method.cost_ratio(len(few), len(data)))
    stated = [seconds for seconds in (measure.seconds(data) for measure in plan.measures) if seconds is not None]
    timed: list[float] = []
    others = [measure.knowing(known) for measure in plan.measures if measure.seconds(data) is None]
    for measure in others:
        if timed and time.process_time() > ends:
            break
        try:
            _, seconds = _timed(partial(measure.apply, few, masked, DRAWS.rng()))
        except SdcmapError:
            continue
        timed.append(seconds * measure.cost_ratio(len(few), len(data)))
    scoring = sum(stated) + float(np.mean(timed or [0.0])) * len(others)
    return plan.count * (float(np.mean(making or [0.0])) + scoring)


def _evenly(data: Microdata) -> Microdata:
    """Some records, evenly over the file, as a file of its own."""
    rows = np.unique(np.linspace(0, len(data) - 1, min(ROWS, len(data))).astype(np.int64))
    part = data.take(rows)
    return Microdata(part.schema, part.columns)


def _timed(run: Callable[[], T]) -> tuple[T, float]:
    """What it gives, and the processor seconds of the second run: without compilation and first views."""
    run()
    start = time.process_time()
    found = run()
    return found, time.process_time() - start
