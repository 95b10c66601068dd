"""Regressions with clustered standard errors against plain formulas and an independent optimizer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from sdcmap.kernels.statistics.clustered_regression import (
    clustered_least_squares,
    clustered_logit,
    independent_columns,
    sums_by_unit,
)

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="module", params=["records", "households"])
def sample(request: pytest.FixtureRequest) -> Arrays:
    rng = np.random.default_rng(4)
    n = 400
    units = np.arange(n) if request.param == "records" else np.sort(rng.integers(0, 120, n))
    units = np.unique(units, return_inverse=True)[1]
    effect = rng.normal(size=n)[units]
    x = np.column_stack([np.ones(n), rng.normal(size=n) + effect, rng.random(n) < 0.3])
    y = 1 + x[:, 1] - 2 * x[:, 2] + effect + rng.normal(size=n)
    return x, y, rng.uniform(0.5, 2.0, n), units


def plain_errors(x: np.ndarray, scores: np.ndarray, bread: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Liang and Zeger's sandwich, unit by unit, with the usual factor for few units and many columns."""
    meat = np.zeros((x.shape[1], x.shape[1]))
    for unit in np.unique(units):
        total = (x[units == unit] * scores[units == unit, None]).sum(axis=0)
        meat += np.outer(total, total)
    count, (n, k) = len(np.unique(units)), x.shape
    return np.sqrt(np.diag(bread @ meat @ bread) * count / (count - 1) * (n - 1) / (n - k))


def test_least_squares_equals_plain_sandwich(sample: Arrays) -> None:
    x, y, w, units = sample
    found = clustered_least_squares(x, y, w, units)
    slopes = np.linalg.lstsq(x * np.sqrt(w)[:, None], y * np.sqrt(w), rcond=None)[0]
    assert found.values == pytest.approx(slopes, rel=1e-9)
    bread = np.linalg.inv((x * w[:, None]).T @ x)
    assert found.errors == pytest.approx(plain_errors(x, w * (y - x @ slopes), bread, units), rel=1e-9)


def test_logit_equals_maximum_of_likelihood(sample: Arrays) -> None:
    x, y, w, units = sample
    ones = (y > y.mean()).astype(float)
    found = clustered_logit(x, ones, w, units)

    def loss(slopes: np.ndarray) -> float:
        eta = x @ slopes
        return float((w * (np.logaddexp(0, eta) - ones * eta)).sum())

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    assert found.values == pytest.approx(best, rel=1e-4, abs=1e-5)
    p = 1 / (1 + np.exp(-(x @ found.values)))
    bread = np.linalg.inv((x * (w * p * (1 - p))[:, None]).T @ x)
    assert found.errors == pytest.approx(plain_errors(x, w * (ones - p), bread, units), rel=1e-4)


def test_dependent_columns_have_no_coefficient(sample: Arrays) -> None:
    x, y, w, units = sample
    twice = np.column_stack([x, x[:, 1] - 3 * x[:, 2]])
    assert independent_columns(twice.T @ twice).tolist() == [0, 1, 2]
    for fit, response in ((clustered_least_squares, y), (clustered_logit, (y > 0).astype(float))):
        found, own = fit(twice, response, w, units), fit(x, response, w, units)
        assert np.isnan(found.values[3]) and np.isnan(found.errors[3])
        assert found.values[:3] == pytest.approx(own.values, rel=1e-8)


def test_units_change_order_and_codes_without_effect(sample: Arrays) -> None:
    x, y, w, units = sample
    order = np.random.default_rng(1).permutation(len(y))
    mixed = np.random.default_rng(2).permutation(units.max() + 1)[units]
    first, second = (
        clustered_least_squares(x, y, w, units),
        clustered_least_squares(x[order], y[order], w[order], mixed[order]),
    )
    assert second.errors == pytest.approx(first.errors, rel=1e-9)


@pytest.mark.parametrize("contradicting", [0, 1])
def test_column_that_separates_the_groups_has_no_coefficient(contradicting: int) -> None:
    rng = np.random.default_rng(8)
    n = 600
    number, indicator = rng.normal(size=n), np.arange(n) < 60
    y = (rng.random(n) < 1 / (1 + np.exp(-number))).astype(float)
    y[indicator] = np.arange(60) < contradicting  # one record is enough for an estimate
    x = np.column_stack([np.ones(n), number, indicator])
    for weight in (1.0, 250.0):
        found = clustered_logit(x, y, np.full(n, weight), np.arange(n))
        assert np.isfinite(found.values[2]) == np.isfinite(found.errors[2]) == bool(contradicting)
        assert found.values[1] == pytest.approx(1.0, abs=0.4) and 0.05 < found.errors[1] < 0.2


def test_exact_relation_has_no_error() -> None:
    rng = np.random.default_rng(9)
    x = np.column_stack([np.ones(90), rng.normal(50, 10, 90), rng.exponential(1000, 90)])
    found = clustered_least_squares(x, 3 + x[:, 1] + x[:, 2], np.ones(90), np.arange(90))
    assert found.values == pytest.approx([3, 1, 1], rel=1e-6) and (found.errors == 0).all()


def test_nothing_is_fitted_without_variation_or_records() -> None:
    x = np.column_stack([np.ones(5), np.arange(5.0)])
    assert np.isnan(clustered_logit(x, np.ones(5), np.ones(5), np.arange(5)).values).all()
    assert np.isnan(clustered_least_squares(x[:2], np.ones(2), np.ones(2), np.arange(2)).values).all()


def test_sums_by_unit_adds_rows() -> None:
    values = np.arange(8.0).reshape(4, 2)
    assert sums_by_unit(values, np.array([0, 1, 0, 1])).tolist() == [[4, 6], [8, 10]]
    assert sums_by_unit(values, np.arange(4)) is values
