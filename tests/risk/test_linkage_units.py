"""The metrics of record linkage and the units of the variables.

Yancey, Winkler, Creecy (2002), section 3.4: r = |a - b| / max(|a|, 0.1), with logarithms in the metric "l". The plain
version here shares nothing with the package: numpy for the weights, scipy for the assignment.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment

import sdcmap as sm
from sdcmap.core import Array
from sdcmap.data.microdata import Microdata
from sdcmap.risk.linkage.record_linkage import NO_LOGARITHM, paper_log, ratio_to_smallest, smallest_size, unit_free_log

RNG = np.random.default_rng(0)
UNITS = (1.0, 1e3, 1e4, 1e5)  # the same file in dollars, thousands, tens and hundreds of thousands
UNIT_FREE = ("unit-free d", "unit-free l")


def lognormal_pair(n: int = 120) -> tuple[Array, Array]:
    """Three amounts in dollars and the same amounts masked by factors close to 1."""
    rng = np.random.default_rng(1)
    x = rng.lognormal(10, 1, (n, 3))
    return x, x * np.exp(rng.normal(0, 0.02, x.shape))


def in_units(x: Array, y: Array, unit: Array | float) -> tuple[Microdata, Microdata]:
    names = [f"x{index}" for index in range(x.shape[1])]
    original = sm.read(pl.DataFrame(x / unit, schema=names), numeric="all")
    return original, original.change(None, {name: (y / unit)[:, index] for index, name in enumerate(names)})


def linked_by_paper(a: Array, b: Array, t: float = 0.2) -> float:
    """The share of true links of the printed metric "l" with weights "freq", all pairs at once."""
    weight = np.zeros((len(a), len(b)))
    for x, y in zip(a.T, b.T, strict=True):
        u = np.mean(x[:, None] == x[None, :])
        high, low = np.log(0.9 / u), np.log(0.1 / (1 - u))
        r = np.abs(np.log(x)[:, None] - np.log(y)[None, :]) / np.maximum(np.abs(np.log(x)), 0.1)[:, None]
        weight += np.maximum(high - (high - low) * r / t, low)
    known, released = linear_sum_assignment(weight, maximize=True)
    return float(np.mean(known == released))


@pytest.mark.parametrize("unit", UNITS)
def test_l_is_the_printed_metric_in_every_unit(unit: float) -> None:
    """It was 0.125 in hundreds of thousands, where most values lie below 1; printed: 1."""
    x, y = lognormal_pair()
    expected = linked_by_paper(x / unit, y / unit)
    assert expected > 0.96
    assert sm.risk.Linkage("l").score(*in_units(x, y, unit), RNG).value == pytest.approx(expected, abs=1e-12)


def test_printed_metrics_depend_on_units() -> None:
    """The constant 0.1: 0.001 and 0.01 nearly agree by d in this unit, and disagree in one a thousand times smaller."""
    for unit, weight in ((1.0, 0.05), (1e-3, -0.5)):
        original, masked = in_units(np.array([[0.001]]), np.array([[0.01]]), unit)
        links = sm.risk.Linkage("d", weights=(1,)).links(original, masked)
        assert links.weight == pytest.approx([weight])
    near_one = in_units(np.array([[1.0]]), np.array([[1.015]]), 1.0)  # log 1 = 0, so the reach is 0.2 x 0.1
    weight = 0.5 - np.log(1.015) / 0.02
    assert sm.risk.Linkage("l", weights=(1,)).links(*near_one).weight == pytest.approx([weight])


def test_conversions_by_hand() -> None:
    x = np.array([np.e, 1, 0.5, 0, -1, np.nan])
    assert paper_log(x)[:3] == pytest.approx([1, 0, np.log(0.5)])
    assert paper_log(x)[3:5].tolist() == [-NO_LOGARITHM, NO_LOGARITHM] and np.isnan(paper_log(x)[5])
    assert smallest_size(x) == 0.5 and smallest_size(np.array([0.0, np.nan])) == 1.0
    assert ratio_to_smallest(x, 0.5)[:5] == pytest.approx([2 * np.e, 2, 1, 0, -2])
    assert unit_free_log(x, 0.5)[:5] == pytest.approx([2 + np.log(2), 1 + np.log(2), 1, 0, -1 - np.log(2)])
    assert unit_free_log(np.array([0.1, -0.1]), 0.5).tolist() == [0, 0]  # below s/e
    assert np.isfinite(unit_free_log(np.array([1e300, -1e300]), 1e-300)).all()


@pytest.mark.parametrize(("metric", "agrees"), [("l", [1, 0, 0, 1, 0, 1]), ("unit-free l", [1, 0, 0, 0, 0, 0])])
def test_zero_and_negative_values(metric: str, agrees: list[int]) -> None:
    """0 with 0; 0 with 5; 5 with -5; -5 with -500; -5 with 5; -5 with -20: `l` sees the sign of a negative value only."""
    known, released = np.array([0, 0, 5, -5, -5, -5.0]), np.array([0, 5, -5, -500, 5, -20.0])
    for index, (a, b) in enumerate(zip(known, released, strict=True)):
        original = in_units(np.array([[a], [5.0]]), np.array([[b], [5.0]]), 1.0)
        attack = sm.risk.Linkage(metric, weights=(1,), open_columns="as any")
        pair = attack.pair(*original, ("x0",))
        positions = (np.flatnonzero(rows == 0) for rows in (pair.known_rows, pair.released_rows))
        cost = attack.cost_models(pair)[0].block(*positions)
        assert cost[0, 0] == pytest.approx(1 - agrees[index], abs=1e-9)


@pytest.mark.parametrize("metric", UNIT_FREE)
def test_rescaling_changes_no_unit_free_link(metric: str) -> None:
    """Columns with zeros and negative values, each in another unit; powers of 2 are exact, others up to rounding."""
    rng = np.random.default_rng(3)
    x = rng.lognormal(0, 2, (90, 3)) * rng.choice([1, -1, 0], (90, 3), p=[0.7, 0.2, 0.1])
    y = x * rng.lognormal(0, 0.35, x.shape) + rng.normal(0, 0.01, x.shape)
    attack = sm.risk.Linkage(metric)
    plain = attack.score(*in_units(x, y, 1.0), RNG)
    assert 0.2 < plain.value < 1
    assert attack.score(*in_units(x, y, np.array([2.0**-20, 2.0**15, 0.5])), RNG) == plain
    other = attack.score(*in_units(x, y, np.array([1000.0, 0.01, 1e5])), RNG)
    assert other.value == pytest.approx(plain.value, abs=1e-12)
    printed = sm.risk.Linkage(metric.removeprefix("unit-free "))
    assert printed.score(*in_units(x, y, 1e6), RNG).value != printed.score(*in_units(x, y, 1.0), RNG).value


def test_rescaling_changes_nothing_for_the_best_attack() -> None:
    rng = np.random.default_rng(4)
    x = rng.lognormal(3, 1, (80, 2))
    y = x + rng.normal(0, 12, x.shape)
    worst = sm.WorstLinkage()
    rates, rescaled = (worst.rates(*in_units(x, y, unit)) for unit in (1.0, np.array([2.0**20, 2.0**-9])))
    assert rates == rescaled and set(UNIT_FREE) < set(rates)
    assert 0 < max(rates.values()) < 1


def test_unit_free_d_is_the_printed_one_where_the_smallest_value_is_one() -> None:
    x, y = lognormal_pair(60)
    x[0] = 1.0
    both = in_units(x, y, 1.0)
    assert sm.risk.Linkage("unit-free d").score(*both, RNG) == sm.risk.Linkage("d").score(*both, RNG)
