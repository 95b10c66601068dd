"""The two-way design that is never stored, against a dense matrix; and the ridge logit on it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.statistics.regression import logit
from sdcmap.utility._propensity_models import ridge_logit
from sdcmap.utility._two_way import TwoWay, count_terms, sum_squared_differences


def mixed(n: int = 60, seed: int = 1) -> tuple[Array, Array]:
    """Return three categorical variables, one constant and one with a rare category, and two numbers with zeros."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, 3, n), np.zeros(n), np.minimum(rng.integers(0, 30, n), 4)])
    return codes.astype(np.int64), rng.normal(size=(n, 2)) * (rng.random((n, 2)) < 0.8)


def dense_terms(codes: Array, numbers: Array, order: int) -> Array:
    """Return every term as a column, in the order of the design."""
    dummies = [[codes[:, v] == level for level in range(1, codes[:, v].max() + 1)] for v in range(codes.shape[1])]
    columns = [np.ones(len(codes)), *(column for own in dummies for column in own), *numbers.T]
    if order == 2:
        columns += [numbers[:, j] * numbers[:, k] for j in range(2) for k in range(j, 2)]
        columns += [dummy * x for own in dummies for dummy in own for x in numbers.T]
        columns += [a * b for first, second in combinations(dummies, 2) for a in first for b in second]
    return np.column_stack(columns).astype(float)


@pytest.mark.parametrize("order", [1, 2])
def test_design_matches_dense_matrix(order: int) -> None:
    codes, numbers = mixed()
    codes[codes[:, 0] == 2, 2] = 0  # cells that do not occur
    whole = dense_terms(codes, numbers, order)
    x = whole[:, (whole != 0).any(axis=0)]
    design = TwoWay.of(codes, numbers, order)
    assert count_terms([2, 0, 4, 1, 1], 2, order) == whole.shape[1] > design.width - (order == 1)
    assert design.predict(np.eye(design.width)) == pytest.approx(x)
    residuals = np.random.default_rng(2).normal(size=(len(x), 3))
    assert design.moments(residuals) == pytest.approx(x.T @ residuals)

    slopes, ones = 0.3 * np.random.default_rng(3).normal(size=design.width), np.arange(len(x)) % 3
    value, gradient, information, p = design.likelihood(ones, 2.0 - ones, slopes)
    eta = x @ slopes
    assert p == pytest.approx(1 / (1 + np.exp(-eta)))
    assert value == pytest.approx(ones @ eta - 2 * np.log1p(np.exp(eta)).sum())
    assert gradient == pytest.approx(x.T @ (ones - 2 * p))
    assert information == pytest.approx((x.T * (2 * p * (1 - p))) @ x)

    after, weights = np.roll(np.arange(len(x)), 1), np.arange(1.0, len(x) + 1)
    changed = (x[after] - x) @ information
    result = sum_squared_differences(design, design.take(after), information, weights)
    assert result == pytest.approx(weights @ (changed * (x[after] - x)).sum(axis=1))


@pytest.mark.parametrize("ridge", [1e-6, 1.0])
def test_ridge_logit_matches_newton(ridge: float) -> None:
    design = TwoWay.of(*mixed(400), 2)
    ones = np.random.default_rng(4).integers(0, 4, 400).astype(float)
    newton, fit = logit(design, ones, 3 - ones, ridge), ridge_logit(design, ones, 3 - ones, ridge)
    assert newton is not None and fit is not None
    assert fit.p == pytest.approx(newton[1], abs=1e-4)


def test_first_step_matches_newton() -> None:
    codes, numbers = mixed()
    design, x = TwoWay.of(codes, numbers, 1), dense_terms(codes, numbers, 1)
    ones = np.arange(60) % 4 == 0
    fit = ridge_logit(design, ones.astype(float), 1.0 - ones, 2.0)
    assert fit is not None
    information = 3 / 16 * x.T @ x + np.diag([0.0] + [2.0] * (x.shape[1] - 1))
    residuals = (ones - 0.25)[:, np.newaxis]
    expected = 3 / 16 * x @ np.linalg.solve(information, x.T @ residuals)
    assert fit.first_step(design, residuals) == pytest.approx(expected)


def test_ridge_logit_fails_on_huge_numbers() -> None:
    codes, numbers = mixed()
    assert ridge_logit(TwoWay.of(codes, numbers * 1e200, 2), np.ones(60), np.ones(60), 1.0) is None


def test_two_threads_give_the_same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, numbers = mixed(500)
    design, residuals = TwoWay.of(codes, numbers, 2), np.random.default_rng(2).normal(size=(500, 3))
    sums = []
    for threads in (1, 2):
        monkeypatch.setattr("sdcmap.utility._two_way.own_threads", lambda threads=threads: threads)
        sums.append(design.moments(residuals))
    assert (sums[0] == sums[1]).all()
