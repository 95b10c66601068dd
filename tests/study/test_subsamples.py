"""Utility as the size of a random subsample with the same score."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import with_file
from sdcmap.core.measure import Estimate
from sdcmap.errors import PlanError, Undefined
from sdcmap.map import RUMap
from sdcmap.study.subsamples import MIN_SUBSAMPLE_RECORDS, SUBSAMPLE_SHARES, Reading, SubsampleCurve

MEAN = sm.utility.MomentChange(on="x")


def normal(count: int, seed: int = 0) -> sm.Microdata:
    return sm.read(pl.DataFrame({"x": np.random.default_rng(seed).standard_normal(count)}))


def exact_curve(records: int) -> SubsampleCurve:
    """The variance of the mean of m of n records: s^2 (1/m - 1/n), Cochran (1977), theorem 2.2."""
    kept = [share for share in SUBSAMPLE_SHARES if share * records >= MIN_SUBSAMPLE_RECORDS]
    losses = [((1 / share - 1) / records) ** 0.5 for share in kept]
    draws = tuple((Estimate(value=loss), Estimate(value=loss)) for loss in losses)
    return SubsampleCurve(MEAN, records, 0.0, tuple(1 - share for share in kept), draws)


def read(records: int, loss: float) -> Reading:
    return exact_curve(records).read([Estimate(value=loss)], np.random.default_rng(0))


@pytest.mark.parametrize(("records", "thrown", "said"), [(200, 2 / 3, "67 %"), (100_000, 1 - 1 / 1001, "99.9 %")])
def test_share_of_a_small_bias_matches_the_formula(records: int, thrown: float, said: str) -> None:
    """.1^2 = 1/m - 1/n: 67 of 200 records, 99.9 of 100,000."""
    reading = read(records, 0.1)
    assert reading.thrown == pytest.approx(thrown, rel=1e-9)
    assert said in reading.text and f"{records:,} records" in reading.text and MEAN.text in reading.text


def test_scores_outside_the_tried_shares_are_bounds() -> None:
    assert read(200, 0.0).words == "costs nothing that it sees in 200 records"
    assert "less than 1 %" in read(200, 1e-4).words and "more than 90 %" in read(200, 5.0).words


def test_subsamples_read_a_bias_as_the_formula_does() -> None:
    """40 draws of each share: the root mean square of a normal error has the relative standard deviation 1/sqrt(80), the
    share then about .05, its mean over 4 seeds .025."""
    shares = []
    for seed in range(4):
        data = normal(200, seed)
        scores = sm.sweep(data, sm.Plan([sm.Noise(on="x")], [MEAN], seed=1), workers=1)
        scores = with_file(scores, "shifted", {MEAN.text: Estimate(value=0.1)})
        (reading,) = sm.as_subsample(data, scores, "shifted", draws=40, seed=seed)
        assert reading.bias is None and reading.low <= (reading.thrown or 0) <= reading.high
        shares.append(reading.thrown or 0.0)
    assert np.mean(shares) == pytest.approx(2 / 3, abs=0.08)


def test_noise_costs_the_expected_records_and_no_bias() -> None:
    """U = n/(s^2 + 0.5 s^2) is that of n/1.5 records (Duncan, Keller-McNulty, Stokes 2001), for every n."""
    data = normal(1000)
    measures = [sm.utility.MeanPrecision(on="x"), sm.utility.IntervalWidth(on="x")]
    plan = sm.Plan([sm.Noise(on="x", variance=0.5)], measures, replicates=20, seed=1)
    readings = sm.as_subsample(data, sm.sweep(data, plan, workers=1), plan.methods[0].text, draws=20)
    for reading in readings:
        assert reading.thrown == pytest.approx(1 / 3, abs=0.06) and (reading.bias or 0) < 0.35


def test_top_coding_is_read_as_bias() -> None:
    data = normal(1000)
    plan = sm.Plan([sm.TopCode(on="x", top=1.5)], [MEAN], seed=1)
    (reading,) = sm.as_subsample(data, sm.sweep(data, plan, workers=1), plan.methods[0].text, draws=20)
    assert (reading.thrown or 0) > 0.1 and (reading.bias or 0) > 0.6


def test_reading_is_withheld_without_a_monotone_curve() -> None:
    data = sm.demo.population(300, seed=1)
    measures = [sm.IL1s(on="wage"), sm.utility.AverageClassSize(), sm.Hellinger()]
    scores = sm.sweep(data, sm.Plan([sm.Swap("Age", 0.2)], [sm.SmallCells(), *measures], seed=1), workers=1)
    swap = next(text for text in scores.methods if text.startswith("Swap"))
    same, classes, tables = sm.as_subsample(data, scores, swap, draws=5)
    assert same.thrown is None and "does not change it" in same.text
    assert classes.thrown is None and "does not move it one way" in classes.text
    assert tables.thrown is not None and 0 < tables.thrown < 1
    with pytest.raises(PlanError, match="a risk is not the price"):
        sm.as_subsample(data, scores, swap, [sm.SmallCells()])
    with pytest.raises(Undefined, match="does not change it"):
        RUMap(scores, sm.SmallCells(), sm.IL1s(on="wage")).subsamples(data, draws=2)


def test_map_draws_subsamples_as_a_curve_and_as_a_scale() -> None:
    data = sm.demo.population(300, seed=1)
    scores = sm.sweep(data, sm.Plan([sm.Swap("Age", 0.2)], [sm.SmallCells(), sm.Hellinger()], seed=1), workers=1)
    ru = RUMap(scores, sm.SmallCells(), sm.Hellinger())
    table = ru.subsamples(data, draws=3)
    assert table["thrown"].to_list() == pytest.approx([0.01, 0.1, 0.25, 0.5, 0.75, 0.9])
    assert table["utility"].is_sorted()
    drawn = str(ru.draw(subsamples=table).spec)
    assert "throwing away this share" in drawn and "10 % thrown away" in drawn
    assert "thrown away" not in str(ru.draw().spec)
