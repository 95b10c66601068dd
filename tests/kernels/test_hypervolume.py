"""The hypervolume equals the share of dominated cells of a fine grid."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sdcmap.kernels.decision.pareto import hypervolume, hypervolume_gains, pick_by_hypervolume
from sdcmap.searches.search_proposals import latin_hypercube

STEPS = 16
GRID_POINTS = arrays(np.int64, st.tuples(st.integers(1, 9), st.just(2)), elements=st.integers(-2, STEPS + 2))


def share_of_cells(x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of the cells of a grid that some point dominates."""
    corner = np.arange(STEPS) / STEPS
    inside = (corner[:, None, None] >= x) & (corner[None, :, None] >= y)
    return float(inside.any(axis=2).mean())


@given(GRID_POINTS)
def test_hypervolume_is_the_share_of_dominated_cells(points: np.ndarray) -> None:
    x, y = points.T / STEPS
    assert np.isclose(hypervolume(x, y), share_of_cells(x, y))


@given(GRID_POINTS, GRID_POINTS)
def test_gain_is_what_one_point_adds(front: np.ndarray, points: np.ndarray) -> None:
    fx, fy = front.T / STEPS
    x, y = points.T / STEPS
    each = [share_of_cells(np.append(fx, a), np.append(fy, b)) - share_of_cells(fx, fy) for a, b in points / STEPS]
    assert np.allclose(hypervolume_gains(x, y, (fx, fy)), each)
    plain = [hypervolume(np.append(fx, a), np.append(fy, b)) - hypervolume(fx, fy) for a, b in points / STEPS]
    assert hypervolume_gains(x, y, (fx, fy)).tolist() == np.maximum(plain, 0.0).tolist()


def test_pick_takes_the_largest_gain_first_and_never_nan() -> None:
    x, y = np.array([np.nan, 0.6, 0.2, 0.5, 0.9]), np.array([0.1, 0.2, 0.6, 0.5, 0.9])
    assert pick_by_hypervolume(x, y, 5, (np.empty(0), np.empty(0))) == [1, 2, 3, 4]
    assert pick_by_hypervolume(x, y, 2, (np.array([0.1]), np.array([0.6]))) == [1, 3]
    assert hypervolume(np.array([np.nan]), np.array([0.0])) == 0.0


def test_latin_hypercube_has_one_point_in_each_interval() -> None:
    points = latin_hypercube(24, 5, np.random.default_rng(1))
    assert (np.sort((points * 24).astype(int), axis=0) == np.arange(24)[:, None]).all()
