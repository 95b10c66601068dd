"""The guess of what a sweep costs: from few records, whatever the plan costs on all of them."""

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
from sdcmap.study.cost import ROWS, cost_guess

SEEN: list[int] = []


@dataclass(frozen=True)
class Counted(Measure):
    """A measure that remembers how many records it was given."""

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    growth: ClassVar[float] = 2.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        SEEN.append(len(masked))
        return Estimate(0.0)


def amounts(n: int) -> Microdata:
    rng = np.random.default_rng(1)
    return sm.read(pl.DataFrame({"x": rng.lognormal(5, 1, n), "y": rng.lognormal(5, 1, n)}), numeric="all")


def test_nothing_is_run_on_the_whole_file() -> None:
    SEEN.clear()
    plan = sm.Plan([sm.Noise("x", variance) for variance in (0.1, 0.2)], [Counted(), sm.IL1s()], seed=1)
    assert cost_guess(amounts(50_000), plan) > 0
    assert set(SEEN) == {ROWS}


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
def test_costs_grow_as_the_class_states(part: Measure | Method, few: int, rows: int, ratio: float) -> None:
    assert part.cost_ratio(few, rows) == pytest.approx(ratio)


def test_the_guess_counts_every_candidate_and_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves by one second a look: a method or measure takes 1 s on the few, so a guess can be told by hand."""
    seconds = iter(range(10_000))
    monkeypatch.setattr(cost.time, "perf_counter", lambda: float(next(seconds)))
    plan = sm.Plan([sm.Noise("x", 0.1)], [sm.IL1s(), sm.utility.IL2()], replicates=3, seed=1)
    assert cost_guess(amounts(10 * ROWS), plan, limit=1e9) == pytest.approx(plan.count * (10 + 2 * 10))


def test_methods_that_cannot_be_made_of_so_few_and_measures_without_a_value() -> None:
    data = amounts(40)
    plan = sm.Plan([sm.Microaggregate(("x", "y"), 39), sm.Noise("x")], [sm.risk.Informed(on=("y",)), sm.IL1s()], seed=1)
    assert cost_guess(data, plan) > 0
