"""The minimum covariance determinant, against all sets of a small file and against outliers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sdcmap.kernels.statistics.robust_scatter import _smallest, robust_scatter


def test_smallest_equals_the_minimum_over_all_sets() -> None:
    """7 of 12 records: 792 sets."""
    for seed in range(5):
        x = np.random.default_rng(seed).standard_t(2, (12, 2))
        best = _smallest(x, np.random.default_rng(0))
        sets = combinations(range(12), (12 + 2 + 1) // 2)
        least = min(np.linalg.det(np.cov(x[list(rows)], rowvar=False)) for rows in sets)
        assert best is not None and np.linalg.det(best.covariance) == pytest.approx(least)


def test_outliers_do_not_change_the_covariance() -> None:
    """5,000 normal records: the standard error of a variance is about 0.02 of it."""
    true = np.array([[2.0, 1.0], [1.0, 3.0]])
    x = np.random.default_rng(1).multivariate_normal([1, 2], true, 5000)
    for outliers in (0, 1000):
        x[:outliers] += 1e6
        scatter = robust_scatter(x)
        assert scatter is not None
        assert scatter.center == pytest.approx([1, 2], abs=0.15)
        assert scatter.covariance == pytest.approx(true, abs=0.3)


def test_result_ignores_record_order_and_is_none_for_planes() -> None:
    x = np.random.default_rng(2).standard_normal((300, 3))
    first, second = robust_scatter(x), robust_scatter(x[::-1].copy())
    assert first is not None and second is not None
    assert first.covariance == pytest.approx(second.covariance, rel=1e-9)
    assert robust_scatter(x[:7]) is None
    x[:200, 0] = 0
    assert robust_scatter(x) is None
