"""Estimate the cost of a sweep: time methods and measures on a few records and extrapolate to the whole file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from sdcmap.core import Measure, Method, Microdata, SdcmapError, Stream
from sdcmap.core.refits import RefitRequest, refit_without
from sdcmap.study.plan import Plan

T = TypeVar("T")
TIMED_RECORDS = 1_000  # each method and measure is timed on a sample of this size
MAX_TIMED_METHODS = 8  # evenly spread over the plan
TIMING_STREAM = Stream.of_seed(0, "cost")
MAX_TIMING_SECONDS = 0.7  # for everything; whatever was not timed gets the mean of the others


@dataclass(frozen=True)
class Cost:
    """The cost of a sweep on one core: the mean seconds to mask and to score a candidate."""

    candidates: int
    masking: float
    scoring: float
    drawn: int = 0  # number of candidates that one more draw of each method would add

    @property
    def seconds(self) -> float:
        return self.candidates * (self.masking + self.scoring)

    @property
    def of_a_draw(self) -> float:
        """Seconds that one more draw of each method adds."""
        return self.drawn * (self.masking + self.scoring)


def estimate_seconds(data: Microdata, plan: Plan, limit: float = MAX_TIMING_SECONDS) -> float:
    """Return the seconds that one core would need (see `estimate_cost`)."""
    return estimate_cost(data, plan, limit).seconds


def estimate_cost(data: Microdata, plan: Plan, limit: float = MAX_TIMING_SECONDS) -> Cost:
    """Estimate the cost of a sweep on one core, in at most about `limit` seconds.

    An expensive measure predicts its seconds by a formula (`Measure.seconds`), which was right within a factor of 3 on
    files of 1,000 to 20,000 mixed records. Other measures and the methods are timed: what takes t seconds on TIMED_RECORDS
    records takes t (n / TIMED_RECORDS)^growth on n. The class states its growth: 1 where each record is processed on its
    own, 2 where each pair is. Refits that measures request are counted with the method.
    """
    ends, few = time.process_time() + limit, _take_evenly(data)
    methods = plan.all_methods[:: max(1, len(plan.all_methods) // MAX_TIMED_METHODS)]
    masking_seconds: list[float] = []
    masked, known = few.change(None, {}), methods[0]
    for method in methods:
        if masking_seconds and time.process_time() > ends - limit / 2:
            break
        with suppress(SdcmapError):  # some methods cannot mask so few records
            masked, seconds = _time_masking(data, few, method, plan.measures)
            known = method
            masking_seconds.append(seconds)
    stated = {measure: measure.seconds(data) for measure in plan.measures}
    timed: list[float] = []
    others = [measure for measure, seconds in stated.items() if seconds is None]
    for measure in others:
        if timed and time.process_time() > ends:
            break
        with suppress(SdcmapError):
            timed.append(_time_scoring(data, few, masked, known, measure))
    scoring = sum(filter(None, stated.values())) + float(np.mean(timed or [0.0])) * len(others)
    drawn = sum(method.random for method in plan.all_methods)
    return Cost(plan.count, float(np.mean(masking_seconds or [0.0])), scoring, drawn)


def price_of_method(data: Microdata, plan: Plan, method: Method, now: Cost) -> float | None:
    """Return the seconds that a method would add to a plan with cost `now`, or None where it cannot mask a few records."""
    with suppress(SdcmapError):
        _, seconds = _time_masking(data, _take_evenly(data), method, plan.measures)
        return plan.draws_of(method) * (seconds + now.scoring)
    return None


def price_of_measure(data: Microdata, plan: Plan, measure: Measure) -> float | None:
    """Return the seconds that a measure would add to a plan, or None where it has no value for a few records."""
    if (stated := measure.seconds(data)) is not None:
        return plan.count * stated
    few = _take_evenly(data)
    for method in plan.all_methods:
        with suppress(SdcmapError):
            return plan.count * _time_scoring(data, few, method.apply(few, TIMING_STREAM), method, measure)
    return None


def _time_masking(
    data: Microdata, few: Microdata, method: Method, measures: Sequence[Measure]
) -> tuple[Microdata, float]:
    """Return a few masked records, and the seconds that the method needs for the whole file and its refits."""
    masked, seconds = _time_second_run(partial(method.apply, few, TIMING_STREAM))
    refits = sum(request.records for request in _requested_refits(measures, method, masked))
    return masked, seconds * method.cost_ratio(len(few), len(data)) * (1 + refits)


def _time_scoring(data: Microdata, few: Microdata, masked: Microdata, method: Method, measure: Measure) -> float:
    """Return the seconds that a measure needs for the whole file, timed on a few masked records."""
    informed = measure.for_informed_attacker(method)
    request = informed.refits(masked)
    refits = refit_without(few, method, TIMING_STREAM, request) if request else ()
    _, seconds = _time_second_run(partial(informed.apply, few, masked, TIMING_STREAM.rng(), refits))
    return seconds * informed.cost_ratio(len(few), len(data))


def count_refits(data: Microdata, plan: Plan) -> int:
    """Return how many refits a sweep makes beside the candidates, for measures that request them."""
    asked = {method: _requested_refits(plan.measures, method, data) for method in plan.all_methods}
    return sum(plan.draws_of(method) * request.times for method, several in asked.items() for request in several)


def _requested_refits(measures: Sequence[Measure], method: Method, masked: Microdata) -> set[RefitRequest]:
    """Return the refits that measures request for a file masked by this method."""
    return {
        request for measure in measures if (request := measure.for_informed_attacker(method).refits(masked)) is not None
    }


def _take_evenly(data: Microdata) -> Microdata:
    """Return a few records, evenly spaced over the file, as an independent file."""
    part = data.take(np.unique(np.linspace(0, len(data) - 1, min(TIMED_RECORDS, len(data))).astype(np.int64)))
    return Microdata(part.schema, part.columns)


def _time_second_run(run: Callable[[], T]) -> tuple[T, float]:
    """Return the result and the processor seconds of the second run, so that compilation is not counted."""
    run()
    start = time.process_time()
    result = run()
    return result, time.process_time() - start
