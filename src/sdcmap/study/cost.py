"""Estimate the cost of a sweep: time methods and measures on a few records and extrapolate to the whole file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from sdcmap.core import Measure, Method, Microdata, SdcmapError, Stream
from sdcmap.core.refits import RefitRequest, refit_without
from sdcmap.study.plan import Plan

T = TypeVar("T")
TIMED_RECORDS = 1_000  # each method and measure is timed on a sample of this size
WARM_UP_RECORDS = 150  # of a first run, which compiles
MOST_RECORDS, CHEAP_SECONDS = 16_000, 0.6  # a method that took less is timed again on four times as many records
TIMING_STREAM = Stream.of_seed(0, "cost")
MAX_TIMING_SECONDS = 2.0  # for everything; whatever was not timed gets the mean of the others
PATIENT_SECONDS = 8.0  # the same, where a person asks for the estimate alone


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
    """Estimate the cost of a sweep on one core, in not much more than `limit` seconds.

    One method of each family of the plan is timed on a few records, and each measure that applies to what it makes. What
    takes t seconds on m records takes t (n / m)^growth on n. The class states its growth: 1 where each record is processed
    on its own, 2 where each pair is. An expensive measure predicts its seconds by a formula instead (`Measure.seconds`).
    Refits that measures request are counted with the method.
    """
    ends, few = time.process_time() + limit, _take_evenly(data)
    masking, counts = list[float](), list[int]()
    # a masked file whose rows belong to people, and one whose rows do not; and the number of candidates of each kind
    examples, pairs = dict[bool, tuple[Microdata, Method]](), dict[bool, int]()
    for method, count in _count_families(plan):
        if examples and time.process_time() > ends - limit / 3:
            break
        with suppress(SdcmapError):  # some methods cannot mask so few records
            masked, seconds = _time_masking(data, few, method, plan.measures)
            examples.setdefault(masked.paired, (masked, method))
            pairs[masked.paired] = pairs.get(masked.paired, 0) + count
            masking, counts = [*masking, seconds], [*counts, count]
    if not examples:
        masking, counts, pairs, examples = [0.0], [1], {True: 1}, {True: (few.change(None, {}), plan.all_methods[0])}
    scoring = 0.0
    for paired, (masked, method) in examples.items():
        measures = [measure for measure in plan.measures if paired or not measure.paired]
        scoring += pairs[paired] / sum(counts) * _time_measures(data, few, masked, method, measures, ends)
    drawn = sum(method.random for method in plan.all_methods)
    return Cost(plan.count, float(np.average(masking, weights=counts)), scoring, drawn)


def _count_families(plan: Plan) -> list[tuple[Method, int]]:
    """Return a method of each family, and how many candidates it has; methods of a family differ in their strength alone.

    The last families of a plan, which are usually the most expensive, alternate with the first.
    """
    families: dict[tuple[str, ...], list[Method]] = {}
    for method in plan.all_methods:
        words = (type(step).__name__ + str(getattr(step, "model", "")) for step in method.steps)
        families.setdefault(tuple(words), []).append(method)
    found = [(own[len(own) // 2], sum(map(plan.draws_of, own))) for own in families.values()]
    ends = zip(found[::-1], found, strict=True)
    return list(dict.fromkeys(pair for both in ends for pair in both))


def _time_measures(
    data: Microdata, few: Microdata, masked: Microdata, method: Method, measures: Sequence[Measure], ends: float
) -> float:
    """Return the seconds of measures on the whole file. Those not timed before `ends` get the mean of the others."""
    stated = {measure: measure.seconds(data) for measure in measures}
    timed: list[float] = []
    others = [measure for measure, seconds in stated.items() if seconds is None]
    for measure in others:
        if timed and time.process_time() > ends:
            break
        with suppress(SdcmapError):
            timed.append(_time_scoring(data, few, masked, method, measure))
    return sum(filter(None, stated.values())) + float(np.mean(timed or [0.0])) * len(others)


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
    with suppress(SdcmapError):  # so that compilation is not timed
        method.apply(_take_evenly(few, WARM_UP_RECORDS), TIMING_STREAM)
    masked, seconds = _time_run(partial(method.apply, few, TIMING_STREAM))
    sample = few
    # larger samples while they are cheap: a part of the cost does not grow with the file
    while len(sample) < min(len(data), MOST_RECORDS) and seconds < CHEAP_SECONDS:
        sample = _take_evenly(data, 4 * len(sample))
        _, seconds = _time_run(partial(method.apply, sample, TIMING_STREAM))
    refits = sum(request.records for request in _requested_refits(measures, method, masked))
    return masked, seconds * method.cost_ratio(len(sample), len(data)) * (1 + refits)


def _time_scoring(data: Microdata, few: Microdata, masked: Microdata, method: Method, measure: Measure) -> float:
    """Return the seconds that a measure needs for the whole file, timed on a few masked records."""
    informed = measure.for_informed_attacker(method)
    request = informed.refits(masked)
    refits = refit_without(few, method, TIMING_STREAM, request) if request else ()
    run = partial(informed.apply, few, rng=TIMING_STREAM.rng(), refits=refits)
    run(masked=masked)  # so that neither compilation nor what is found once for all candidates is timed
    _, seconds = _time_run(partial(run, masked=masked.change(None, {})))
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


def _take_evenly(data: Microdata, records: int = TIMED_RECORDS) -> Microdata:
    """Return a few records, evenly spaced over the file, as an independent file."""
    part = data.take(np.unique(np.linspace(0, len(data) - 1, min(records, len(data))).astype(np.int64)))
    return Microdata(part.schema, part.columns)


def _time_run(run: Callable[[], T]) -> tuple[T, float]:
    """Return a result and the processor seconds that it took, on one thread as in a sweep."""
    with threadpool_limits(1):
        start = time.process_time()
        result = run()
        return result, time.process_time() - start
