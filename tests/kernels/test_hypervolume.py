"""The area that points dominate, beside counting it on a fine grid."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sdcmap.kernels.decision.pareto import gains, hypervolume, picked
from sdcmap.searches.search_proposals import latin_hypercube

STEPS = 16
PLACES = arrays(np.int64, st.tuples(st.integers(1, 9), st.just(2)), elements=st.integers(-2, STEPS + 2))


def counted(x: np.ndarray, y: np.ndarray) -> float:
    """The share of the cells of a grid that some point dominates."""
    corner = np.arange(STEPS) / STEPS
    inside = (corner[:, None, None] >= x) & (corner[None, :, None] >= y)
    return float(inside.any(axis=2).mean())


@given(PLACES)
def test_the_area_is_what_counting_cells_gives(places: np.ndarray) -> None:
    x, y = places.T / STEPS
    assert np.isclose(hypervolume(x, y), counted(x, y))


@given(PLACES, PLACES)
def test_a_gain_is_what_one_point_adds(front: np.ndarray, points: np.ndarray) -> None:
    fx, fy = front.T / STEPS
    x, y = points.T / STEPS
    each = [counted(np.append(fx, a), np.append(fy, b)) - counted(fx, fy) for a, b in points / STEPS]
    assert np.allclose(gains(x, y, (fx, fy)), each)
    plain = [hypervolume(np.append(fx, a), np.append(fy, b)) - hypervolume(fx, fy) for a, b in points / STEPS]
    assert gains(x, y, (fx, fy)).tolist() == np.maximum(plain, 0.0).tolist()


def test_what_adds_most_is_picked_first_and_nothing_without_a_value() -> None:
    x, y = np.array([np.nan, 0.6, 0.2, 0.5, 0.9]), np.array([0.1, 0.2, 0.6, 0.5, 0.9])
    assert picked(x, y, 5, (np.empty(0), np.empty(0))) == [1, 2, 3, 4]
    assert picked(x, y, 2, (np.array([0.1]), np.array([0.6]))) == [1, 3]
    assert hypervolume(np.array([np.nan]), np.array([0.0])) == 0.0


def test_a_latin_hypercube_has_one_point_in_each_interval() -> None:
    points = latin_hypercube(24, 5, np.random.default_rng(1))
    assert (np.sort((points * 24).astype(int), axis=0) == np.arange(24)[:, None]).all()
