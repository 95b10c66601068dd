"""The estimated cost of a sweep, from a few records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import polars as pl
import pytest
from numpy.random import Generator

import sdcmap as sm
from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.method import Method
from sdcmap.data.microdata import Microdata
from sdcmap.study import cost
from sdcmap.study.cost import TIMED_RECORDS, estimate_seconds

SEEN: list[int] = []


@dataclass(frozen=True)
class Counted(Measure):
    """A measure that records how many records it was given."""

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    growth: ClassVar[float] = 2.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        SEEN.append(len(masked))
        return Estimate(value=0.0)


def amounts(n: int) -> Microdata:
    rng = np.random.default_rng(1)
    return sm.read(pl.DataFrame({"x": rng.lognormal(5, 1, n), "y": rng.lognormal(5, 1, n)}), numeric="all")


def test_estimate_cost_runs_nothing_on_the_whole_file() -> None:
    SEEN.clear()
    plan = sm.Plan([sm.Noise("x", variance) for variance in (0.1, 0.2)], [Counted(), sm.IL1s()], seed=1)
    assert estimate_seconds(amounts(50_000), plan) > 0
    assert set(SEEN) == {TIMED_RECORDS}


@pytest.mark.parametrize(
    ("part", "few", "rows", "ratio"),
    [
        (sm.IL1s(), 1_000, 200_000, 200), (sm.risk.NearestRecord(), 1_000, 20_000, 400),
        (sm.WorstLinkage(), 1_000, 50_000, 2_500), (sm.WorstLinkage(), 1_000, 200_000, 200_000 * 2_500 / 1_000**2),
        (sm.WorstLinkage(targets=100), 1_000, 10_000, 10), (sm.Noise("x"), 10, 100, 10),
        (sm.Chain((sm.Noise("x"), sm.Microaggregate("y"))), 10, 100, 100),
        (sm.risk.IntruderKnowledge("x"), 1_000, 20_000, 400),
    ],
)  # fmt: skip
def test_cost_grows_as_the_class_states(part: Measure | Method, few: int, rows: int, ratio: float) -> None:
    assert part.cost_ratio(few, rows) == pytest.approx(ratio)


@dataclass(frozen=True)
class Stated(Counted):
    """A measure that states its cost and must not be run."""

    def seconds(self, data: Microdata) -> float | None:
        return len(data) / 100


def test_measure_with_a_seconds_formula_is_not_run() -> None:
    SEEN.clear()
    plan = sm.Plan([sm.Noise("x", 0.1)], [Stated(), sm.IL1s()], replicates=2, seed=1)
    assert estimate_seconds(amounts(50_000), plan) == pytest.approx(plan.count * 500, rel=0.1)
    assert not SEEN


def test_expensive_measures_state_seconds_that_grow_with_the_data() -> None:
    """Twice the records: four times the pairs of all, also where one attack links all one-to-one beside drawn targets;
    twice the pairs of drawn targets alone, twice the rows of a logit; a second order adds terms; timed ones state none."""
    small, large = amounts(20_000), amounts(40_000)

    def ratio(measure: Measure) -> float:
        before, after = measure.seconds(small), measure.seconds(large)
        assert before is not None and after is not None
        return after / before

    assert 3.5 < ratio(sm.WorstLinkage()) < 4 and 1.5 < ratio(sm.WorstLinkage(targets=100, one_to_one="none")) < 2
    assert ratio(sm.risk.IntruderKnowledge("x")) == pytest.approx(ratio(sm.WorstLinkage()))
    assert ratio(sm.utility.Propensity()) == pytest.approx(2, rel=0.01)
    first, second = (sm.utility.Propensity(order=order).seconds(small) for order in (1, 2))
    assert first is not None and second is not None and first < second < 1
    for measure in (sm.risk.NearestRecord(), sm.utility.Propensity(model="trees"), sm.IL1s()):
        assert measure.seconds(small) is None
    assert sm.risk.IntruderKnowledge("x", scenario="noise").seconds(small) is None


def test_estimate_counts_every_candidate_and_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that advances by one second per reading, so that the estimate can be computed by hand."""
    seconds = iter(range(10_000))
    monkeypatch.setattr(cost.time, "process_time", lambda: float(next(seconds)))
    plan = sm.Plan([sm.Noise("x", 0.1)], [sm.IL1s(), sm.utility.IL2()], replicates=3, seed=1)
    assert estimate_seconds(amounts(10 * TIMED_RECORDS), plan, limit=1e9) == pytest.approx(plan.count * (10 + 2 * 10))


def test_estimate_skips_methods_and_measures_that_fail_on_few_records() -> None:
    data = amounts(40)
    plan = sm.Plan([sm.Microaggregate(("x", "y"), 39), sm.Noise("x")], [sm.risk.Informed(on=("y",)), sm.IL1s()], seed=1)
    assert estimate_seconds(data, plan) > 0
