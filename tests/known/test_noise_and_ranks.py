"""Numeric methods and measures against closed forms and published tables."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.masking.noise_covariance import covariance_root
from sdcmap.kernels.statistics.precision import precision_of_errors
from sdcmap.methods.rank_swap import rank_swap

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def incomes() -> Microdata:
    x = np.random.default_rng(7).normal(50, 3, 400)
    return sm.read(pl.DataFrame({"x": x, "z": 2 * x + np.random.default_rng(8).normal(0, 1, 400)}), numeric="all")


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_known_index_and_mean_precision_meet_their_closed_forms(incomes: Microdata, share: float) -> None:
    """Duncan et al. (2001): R = 1/lambda^2 (eq. 4), U = n/(s^2 + lambda^2); 300 replicates, within 3 standard errors."""
    plan = sm.Plan(
        sm.Noise(on="x", variance=share),
        [sm.risk.KnownIndex(on="x"), sm.utility.MeanPrecision(on="x")],
        replicates=300,
        seed=42,
    )
    scores = sm.sweep(incomes, plan, workers=1)
    s2, n = incomes["x"].var(ddof=1), len(incomes)
    for measure, exact in (("KnownIndex(on='x')", 1 / (share * s2)), ("MeanPrecision(on='x')", n / (s2 * (1 + share)))):
        row = scores.pooled(measure).filter(pl.col("method").str.starts_with("Noise")).row(0, named=True)
        assert row["se"] > 0
        assert abs(row["value"] - exact) < 3 * row["se"], measure


def test_expectations_do_not_average() -> None:
    """With true R = 4 the mean of 1/e^2 is far off; 1/mean(e^2) is not."""
    errors = np.random.default_rng(3).normal(0, 0.5, 20_000) ** 2
    value, se = precision_of_errors(errors)
    assert se is not None
    assert abs(value - 4) < 4 * se
    assert (1 / errors).mean() > 100


def test_one_file_has_its_worst_record_beside_it(incomes: Microdata) -> None:
    masked = sm.Noise(on="x").apply(incomes, Stream.of_seed(1))
    squared = (masked["x"] - incomes["x"]) ** 2
    found = sm.risk.KnownIndex(on="x").score(incomes, masked, RNG)
    assert found.value == pytest.approx(1 / squared.mean())
    assert found.parts["smallest squared error"] == pytest.approx(squared.min())
    assert sm.risk.KnownIndex(on="x").records(incomes, masked) == pytest.approx(1 / squared)
    assert sm.risk.KnownIndex(on="x").score(incomes, incomes.change(None, {}), RNG).value == np.inf
    assert sm.risk.KnownIndex(on="x").baseline(incomes) == pytest.approx(1 / incomes["x"].var(ddof=1))


def test_bounds_and_larger_variance_above_a_value() -> None:
    """Y = max(0, x + e) (Duncan et al., section 4), and the noise variance of the two groups within 10 %."""
    x = np.repeat([1.0, 30.0], 20_000)
    data = sm.read(pl.DataFrame({"x": x}), numeric="all")
    method = sm.Noise(on="x", variance=0.01, above=10, variance_above=0.04, lower=0)
    y = method.apply(data, Stream.of_seed(4))["x"]
    assert y.min() == 0
    assert (y[x == 30] - 30).var() == pytest.approx(0.04 * x.var(ddof=1), rel=0.05)
    assert (y[x == 1] == 0).mean() == pytest.approx(0.2438, abs=0.02)  # Phi(-1/(0.1 * 14.5))


def test_correlated_noise_keeps_the_shape_of_the_covariance(incomes: Microdata) -> None:
    method = sm.Noise(on=["x", "z"], variance=0.5, correlated=True)
    x = incomes.matrix(["x", "z"])
    covariances = [np.cov((method.apply(incomes, Stream.of_seed(s)).matrix(["x", "z"]) - x).T) for s in range(200)]
    assert np.mean(covariances, axis=0) == pytest.approx(0.5 * np.cov(x.T), rel=0.03)


def test_the_root_of_a_singular_covariance(casc_census: Microdata) -> None:
    """PTOTVAL = PEARNVAL + POTHVAL, so the 13-variable covariance has rank 12; L L' gives it back all the same."""
    covariance = np.cov(casc_census.matrix(casc_census.numeric), rowvar=False)
    root = covariance_root(covariance)
    assert np.isfinite(root).all()
    assert root @ root.T == pytest.approx(covariance, rel=1e-6, abs=1e-6 * np.abs(covariance).max())


# 50-seed means and sd of IL1s; YWC (2002) Table 1 in the right reading (their printed IL1s rows are IL1/sqrt 2)
@pytest.mark.parametrize(("p", "mean", "sd"), [(0.05, 0.0883, 0.0012), (0.10, 0.1577, 0.0015), (0.15, 0.2193, 0.0019)])
def test_rank_swap_meets_the_table(casc_census: Microdata, p: float, mean: float, sd: float) -> None:
    method, seeds = sm.RankSwap(on=casc_census.numeric, p=p), 20
    files = [method.apply(casc_census, Stream.of_seed(seed)) for seed in range(seeds)]
    found = np.mean([sm.IL1s().score(casc_census, masked, RNG).value for masked in files])
    assert abs(found - mean) < 4 * sd * np.sqrt(1 / seeds + 1 / 50)
    for name in casc_census.numeric:
        assert np.array_equal(np.sort(files[0][name]), np.sort(casc_census[name]))


# the same of additive noise, d = .01 and .10, correlated (eigenvector root)
@pytest.mark.parametrize(("d", "mean", "sd"), [(0.01, 0.0564, 0.0008), (0.10, 0.1784, 0.0024)])
def test_correlated_noise_meets_the_table(casc_census: Microdata, d: float, mean: float, sd: float) -> None:
    method, seeds = sm.Noise(on=casc_census.numeric, variance=d, correlated=True), 20
    files = [method.apply(casc_census, Stream.of_seed(seed)) for seed in range(seeds)]
    found = np.mean([sm.IL1s().score(casc_census, masked, RNG).value for masked in files])
    assert abs(found - mean) < 4 * sd * np.sqrt(1 / seeds + 1 / 50)


def test_rank_windows_are_strict_and_free_ranks_equally_likely() -> None:
    x = np.arange(10.0)
    moves = [rank_swap(x, 0.3, np.random.default_rng(seed)) - x for seed in range(3000)]
    assert np.abs(moves).max() == 2  # 0 < |k - i| < 3
    first = np.array([move[0] for move in moves])
    assert abs((first == 1).mean() - 0.5) < 4 * np.sqrt(0.25 / 3000)


def test_the_search_of_a_full_window_draws_uniformly_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one try the free ranks are listed instead; the distribution of the partner of rank 0 is the same."""
    monkeypatch.setattr("sdcmap.methods.rank_swap.MAX_WINDOW_DRAWS", 1)
    x = np.arange(8.0)
    third = [rank_swap(x, 0.5, np.random.default_rng(seed))[2] for seed in range(4000)]
    monkeypatch.setattr("sdcmap.methods.rank_swap.MAX_WINDOW_DRAWS", 64)
    again = [rank_swap(x, 0.5, np.random.default_rng(seed + 10_000))[2] for seed in range(4000)]
    for value in range(8):
        share = (third.count(value) + again.count(value)) / 8000
        slack = 5 * np.sqrt(2 * max(share * (1 - share), 1e-4) / 4000)
        assert abs(third.count(value) - again.count(value)) / 4000 < slack


def test_il1s_by_hand() -> None:
    """S = 1 for 1, 2, 3: losses .5/sqrt 2, 0, and a suppressed 3 counts as the mean 2."""
    x = sm.read(pl.DataFrame({"x": [1.0, 2.0, 3.0, None]}), numeric="all")
    z = x.change(None, {"x": np.array([1.5, 2.0, np.nan, 7.0])})
    assert sm.IL1s().score(x, z, RNG).value == pytest.approx((0.5 + 0 + 1) / np.sqrt(2) / 3)
    each = sm.IL1s().records(x, z)
    assert each[:3] == pytest.approx([0.5 / np.sqrt(2), 0, 1 / np.sqrt(2)])
    assert np.isnan(each[3])


def test_weighted_mean_precision_by_hand() -> None:
    """x = 1, 3 with weights 1, 3: mean 2.5, Kish n = 16/10, s^2 = .75 n/(n - 1) = 2, U = n/s^2 = .8 for the same file."""
    data = sm.read(pl.DataFrame({"x": [1.0, 3.0], "w": [1.0, 3.0]}), numeric=["x"], weight="w")
    found = sm.utility.MeanPrecision(on="x", weighted=True).score(data, data.change(None, {}), RNG)
    assert found.value == pytest.approx(1.6 / 2)
    assert sm.utility.MeanPrecision(on="x").score(data, data.change(None, {}), RNG).value == pytest.approx(1.0)
