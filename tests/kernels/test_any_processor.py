"""Results do not depend on the processor.

The order of equal values in numpy's partitions and the signs of eigenvectors differ between processors. Each test runs a
kernel as two processors would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.noise_covariance import covariance_root
from sdcmap.kernels.statistics.robust_scatter import robust_scatter
from sdcmap.methods._gower_groups import first_component
from sdcmap.risk.linkage.assignment import assign_all_pairs


def partition_in_another_order(a: Array, kth: int, axis: int = -1) -> Array:
    """Return a correct `np.argpartition` with equal values, and each of its two parts, in reversed order."""
    order = np.flip(np.argsort(np.flip(a, axis=axis), axis=axis, kind="stable"), axis=axis)
    order = a.shape[axis] - 1 - np.flip(order, axis=axis)
    first, second = np.split(order, [kth], axis=axis)
    return np.concatenate([np.flip(first, axis=axis), np.flip(second, axis=axis)], axis=axis)


def eigh_with_other_signs(matrix: Array, eigh: Callable[[Array], Any] = np.linalg.eigh) -> tuple[Array, Array]:
    """Return a correct `np.linalg.eigh`, with every second eigenvector negated and other last bits."""
    values, vectors = eigh(matrix)
    index = np.arange(len(values))
    return values, vectors * np.where(index % 2, 1.0, -1.0) * (1 + 1e-15 * index)[:, np.newaxis]


def test_tied_scores_give_the_same_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank windows give many ties: 0 inside the window and -20 outside, for each of two fields."""
    rng = np.random.default_rng(1)
    near = [np.abs(np.subtract.outer(rng.permutation(300), rng.permutation(300))) < 20 for _ in range(2)]
    score = -20.0 * (~near[0]) - 20.0 * (~near[1])
    here = assign_all_pairs(score)
    monkeypatch.setattr(np, "argpartition", partition_in_another_order)
    there = assign_all_pairs(score)
    assert np.array_equal(here, there)


@pytest.mark.parametrize("n", [40, 300])
def test_scores_equal_up_to_rounding_tie(n: int) -> None:
    """Categories give sums of the same log probabilities, in another order and with other last bits."""
    rng = np.random.default_rng(1)
    terms = np.log(np.array([0.9, 0.05]))[rng.integers(0, 2, (6, n, n))]
    forwards, backwards = (sum(part, np.zeros((n, n))) for part in (terms, terms[::-1] * (1 + 1e-15)))
    assert not np.array_equal(forwards, backwards)
    assert np.array_equal(assign_all_pairs(forwards), assign_all_pairs(backwards))


def test_robust_scatter_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(2).integers(0, 4, (40, 2)).astype(float)
    here = robust_scatter(x)
    monkeypatch.setattr(np, "argpartition", partition_in_another_order)
    there = robust_scatter(x)
    assert here is not None and there is not None
    assert there.covariance == pytest.approx(here.covariance, rel=1e-12)


@pytest.mark.parametrize("kind", ["eigen", "symmetric", "cholesky"])
def test_covariance_root_is_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(3).standard_normal((50, 3)) @ np.array(
        [[3.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 1.0]]
    )
    covariance = np.cov(np.column_stack([x, x.sum(axis=1)]), rowvar=False)
    here = covariance_root(covariance, kind)
    monkeypatch.setattr(np.linalg, "eigh", eigh_with_other_signs)
    assert covariance_root(covariance, kind) == pytest.approx(here, rel=1e-12, abs=1e-12)


def test_noise_preserves_a_sum_to_the_last_digits() -> None:
    """An eigenvalue of 0 up to rounding adds no noise: total = a + b holds far better than to the root of a rounding."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        parts = rng.lognormal(10, 1, (100, 2))
        root = covariance_root(np.cov(np.column_stack([parts, parts.sum(axis=1)]), rowvar=False))
        noise = rng.standard_normal((100, 3)) @ root.T
        assert noise[:, 2] == pytest.approx(noise[:, 0] + noise[:, 1], abs=1e-12 * np.abs(noise).max())


def test_first_component_of_opposite_columns_has_a_fixed_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loadings of 0.707 and -0.707 are equal in size up to rounding; the first is made positive."""
    x = np.random.default_rng(5).standard_normal(40)
    z = np.column_stack([x, -x + 0.1 * np.arange(40)])
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    here = first_component(z)
    monkeypatch.setattr(np.linalg, "eigh", eigh_with_other_signs)
    assert first_component(z) == pytest.approx(here)
    assert np.corrcoef(here, z[:, 0])[0, 1] > 0
