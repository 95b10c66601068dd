"""What a sweep will cost: methods and measures timed on a few of the records, and their growth taken to all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from sdcmap.core import Measure, Method, Microdata, SdcmapError, Stream
from sdcmap.core.refits import Folds, refit_without
from sdcmap.study.plan import Plan

T = TypeVar("T")
TIMED_RECORDS = 1_000  # on which each is timed
MAX_TIMED_METHODS = 8  # that are timed, spread over the plan
TIMING_STREAM = Stream.of_seed(0, "cost")
MAX_TIMING_SECONDS = 0.7  # for all of it; what is not reached costs what the others do in the mean


@dataclass(frozen=True)
class Cost:
    """What a sweep costs one core, in seconds: of a candidate, in the mean, its making and its scoring."""

    candidates: int
    masking: float
    scoring: float
    drawn: int = 0  # candidates that one more draw of each method would add

    @property
    def seconds(self) -> float:
        return self.candidates * (self.masking + self.scoring)

    @property
    def of_a_draw(self) -> float:
        """What one more draw of each method adds."""
        return self.drawn * (self.masking + self.scoring)


def estimate_seconds(data: Microdata, plan: Plan, limit: float = MAX_TIMING_SECONDS) -> float:
    """Seconds that one core would need (see `estimate_cost`)."""
    return estimate_cost(data, plan, limit).seconds


def estimate_cost(data: Microdata, plan: Plan, limit: float = MAX_TIMING_SECONDS) -> Cost:
    """What a sweep costs one core; a guess, after at most about `limit` seconds, whatever the plan costs.

    A measure that is dear states its seconds by a formula (`Measure.seconds`), which was right within a factor of 3 on
    files of 1,000 to 20,000 mixed records. Others, and methods, are timed: what takes t seconds on ROWS records takes
    t (n / ROWS)^growth on n, with the growth that its class states: 1 where each record is looked at on its own, 2 where
    each pair is. Releases that measures ask to be made again without some of the people are counted with the method.
    """
    ends, few = time.process_time() + limit, _take_evenly(data)
    methods = plan.all_methods[:: max(1, len(plan.all_methods) // MAX_TIMED_METHODS)]
    making: list[float] = []
    masked, known = few.change(None, {}), methods[0]
    for method in methods:
        if making and time.process_time() > ends - limit / 2:
            break
        with suppress(SdcmapError):  # it cannot be made of so few
            masked, seconds = _time_masking(data, few, method, plan.measures)
            known = method
            making.append(seconds)
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
    return Cost(plan.count, float(np.mean(making or [0.0])), scoring, drawn)


def price_of_method(data: Microdata, plan: Plan, method: Method, now: Cost) -> float | None:
    """Seconds that a method would add to a plan that costs `now`; None where it cannot be made of a few records."""
    with suppress(SdcmapError):
        _, seconds = _time_masking(data, _take_evenly(data), method, plan.measures)
        return plan.draws_of(method) * (seconds + now.scoring)
    return None


def price_of_measure(data: Microdata, plan: Plan, measure: Measure) -> float | None:
    """Seconds that a measure would add to a plan; None where it has no value of a few records."""
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
    """A few records as a method masks them, and the seconds that it would take on all of them, makings again included."""
    made, seconds = _time_second_run(partial(method.apply, few, TIMING_STREAM))
    again = sum(folds.times * (1 - folds.held_out) for folds in _requested_refits(measures, method, made))
    return made, seconds * method.cost_ratio(len(few), len(data)) * (1 + again)


def _time_scoring(data: Microdata, few: Microdata, masked: Microdata, method: Method, measure: Measure) -> float:
    """The seconds that a measure would take on all records, timed on a few that a method masked."""
    knowing = measure.for_informed_attacker(method)
    folds = knowing.refits(masked)
    refits = refit_without(few, method, TIMING_STREAM, folds) if folds else ()
    _, seconds = _time_second_run(partial(knowing.apply, few, masked, TIMING_STREAM.rng(), refits))
    return seconds * knowing.cost_ratio(len(few), len(data))


def count_refits(data: Microdata, plan: Plan) -> int:
    """How many releases without some of the people a sweep makes beside the candidates, for measures that ask for them."""
    asked = {method: _requested_refits(plan.measures, method, data) for method in plan.all_methods}
    return sum(plan.draws_of(method) * folds.times for method, several in asked.items() for folds in several)


def _requested_refits(measures: Sequence[Measure], method: Method, masked: Microdata) -> set[Folds]:
    """The makings that measures ask for, beside a file that this method made."""
    return {
        folds for measure in measures if (folds := measure.for_informed_attacker(method).refits(masked)) is not None
    }


def _take_evenly(data: Microdata) -> Microdata:
    """Some records, evenly over the file, as a file of its own."""
    part = data.take(np.unique(np.linspace(0, len(data) - 1, min(TIMED_RECORDS, len(data))).astype(np.int64)))
    return Microdata(part.schema, part.columns)


def _time_second_run(run: Callable[[], T]) -> tuple[T, float]:
    """What it gives, and the processor seconds of the second run: without compilation and first views."""
    run()
    start = time.process_time()
    found = run()
    return found, time.process_time() - start
