"""Utility measures against values that the incumbents print.

"Help" is sdcMicro's rendered help pages (version 5.8.1). Its sums over variables are ours times their number: our values
are means. Reference formulas of the literature are checked beside them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.utility._propensity_models import expected_pmse_of_draws
from sdcmap.utility.interval_overlap import Interval, overlap

ONCE = Stream.of_seed(1)
RNG = np.random.default_rng(1)


@pytest.mark.parametrize(("size", "loss"), [(3, 5.69), (4, 7.49), (5, 9.09), (10, 14.16)])
def test_mdav_loss_of_the_census_file(casc_census: Microdata, size: int, loss: float) -> None:
    """100 SSE/SST of the standardized CASC file "Census", 13 variables: Domingo-Ferrer, Martinez-Balleste, Mateo-Sanz,
    Sebe (2006), MDAV."""
    masked = sm.Microaggregate(casc_census.names, size=size).apply(casc_census, ONCE)
    assert 100 * sm.utility.SseSst().apply(casc_census, masked, RNG).value == pytest.approx(loss, abs=0.005)


def first_fifty(shared: Path) -> Microdata:
    data = sm.read(shared / "data" / "casc_tarragona.parquet", numeric="all").take(np.arange(50))
    return Microdata(data.schema, data.columns)


def in_file_order(data: Microdata) -> Microdata:
    """sdcMicro's method "simple": means of three records each as they stand, those left over in the last group."""
    x = data.matrix(data.names)
    group = np.minimum(np.arange(len(x)) // 3, len(x) // 3 - 1)
    means = np.array([x[group == g].mean(axis=0) for g in group])
    return data.change(None, dict(zip(data.names, means.T, strict=True)))


@pytest.mark.parametrize(("method", "printed"), [("simple", 5.763), ("individual", 27.008), ("projection", 6.818)])
def test_eigenvalues_of_val_table(shared: Path, method: str, printed: float) -> None:
    """Help of valTable(Tarragona[1:50, ], method = c("simple", "onedims", "pca")): column deigenvalues, the sum of
    |e - e'|/e over the eigenvalues of the correlation matrices."""
    data = first_fifty(shared)
    simple = method == "simple"
    masked = in_file_order(data) if simple else sm.Microaggregate(data.names, method=method).apply(data, ONCE)
    found = sm.utility.MomentChange(of="eigenvalues").apply(data, masked, RNG).value
    assert 13 * found == pytest.approx(printed, abs=0.0005)


def test_eigenvalues_of_mdav(shared: Path) -> None:
    """Help of dUtility and print of sdcMicroObj: testdata, expend, income and savings, mdav 3: "Difference of
    Eigenvalues: 0.020 %"; 0.0186 % by an independent program from the formula. Correlations of each variable with
    itself, masked: 0.998 each."""
    on = ("expend", "income", "savings")
    data = sm.read(shared / "data" / "sdcmicro_testdata.parquet", numeric=on)
    masked = sm.Microaggregate(on).apply(data, ONCE)
    found = 300 * sm.utility.MomentChange(on=on, of="eigenvalues").apply(data, masked, RNG).value
    assert found == pytest.approx(0.0186, abs=0.00005)
    for name in on:  # group means: r^2 = 1 - SSE/SST
        loss = sm.utility.SseSst(on=name).apply(data, masked, RNG).value
        assert np.sqrt(1 - loss) == pytest.approx(0.998, abs=0.0005)
        assert np.corrcoef(data[name], masked[name])[0, 1] == pytest.approx(np.sqrt(1 - loss), abs=1e-9)


def test_suppressed_shares_of_the_help_example(shared: Path) -> None:
    """Help of localSupp: 3 of the 8 values of Key4 of francdat are suppressed (rows 4, 6 and 7 are above 0.15); the share
    over the four keys is 3/32."""
    keys = ("Key1", "Key2", "Key3", "Key4")
    data = sm.read(shared / "data" / "sdcmicro_francdat.parquet", keys=keys)
    masked = data.change(np.array([3, 5, 6]), {"Key4": np.full(3, np.nan)})
    found = sm.utility.SuppressionLoss(on=keys).apply(data, masked, RNG)
    assert found.value == pytest.approx(3 / 32)
    assert found.parts["on Key4"] == pytest.approx(3 / 8)


def test_loss_metric_of_a_recoded_variable() -> None:
    """Iyengar (2002), section 3: a value generalized to M_P of the M leaves loses (M_P - 1)/(M - 1). Ten
    ages in groups of 3, 3 and 4."""
    ages = sm.read({"age": np.repeat([str(a) for a in range(10)], 2)}, keys=["age"])
    masked = sm.Recode(on="age", merge=[["0", "1", "2"], ["3", "4", "5"], ["6", "7", "8", "9"]]).apply(ages, ONCE)
    expected = (6 * 2 + 6 * 2 + 8 * 3) / 20 / 9
    assert sm.utility.CategoryLoss(on="age").apply(ages, masked, RNG).value == pytest.approx(expected)


def test_interval_overlap_of_the_formula() -> None:
    """Karr et al. (2006), eq. 1, by hand: (0, 4) and (2, 10) share (2, 4), half of one and a quarter of the other."""
    assert overlap(Interval(0, 4), Interval(2, 10)) == pytest.approx((2 / 4 + 2 / 8) / 2)
    assert overlap(Interval(0, 4), Interval(5, 6)) == 0
    assert overlap(Interval(0, 4), Interval(1, 1)) == pytest.approx((0 + 1) / 2)


def test_null_of_synthetic_data() -> None:
    """Snoke et al. (2018), eq. 5: (k - 1)(1 - c)^2 c/N; with as many synthetic as original records, (k - 1)/(8 N)."""
    assert expected_pmse_of_draws(11, 500, 500) == pytest.approx(10 / 8 / 1000)
