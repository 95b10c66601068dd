"""Grids of numbers: what is moved onto one is written as the numbers that lie on it."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.masking.granularity import common_step, in_step_with, on_grid_of, rounded_as_others
from sdcmap.kernels.masking.own_values import unowned_numbers

RNG = np.random.default_rng(4)
AMOUNTS = RNG.lognormal(7, 1, 500).round(2)


def test_a_value_of_the_original_is_that_value_to_the_last_bit() -> None:
    assert (on_grid_of(AMOUNTS + 1e-12, AMOUNTS) == AMOUNTS).all() and on_grid_of(np.zeros(1), AMOUNTS)[0] == 0
    quarters = AMOUNTS.round() / 4 + 0.1  # a grid that does not begin at 0
    assert (on_grid_of(quarters + 0.05, quarters) == quarters).all()
    assert (on_grid_of(AMOUNTS, RNG.normal(size=500)) == AMOUNTS).all()  # no grid


def test_zeros_of_a_step_that_changes_some_values_stay_zeros() -> None:
    before = np.where(RNG.random(500) < 0.5, 0.0, AMOUNTS)
    new = np.where(RNG.random(500) < 0.5, before, RNG.permutation(before))
    moved = in_step_with(new, before)
    assert (moved == new).all() and np.isin(moved, before).all()


def test_own_numbers_are_drawn_on_the_grid() -> None:
    drawn = unowned_numbers(AMOUNTS, AMOUNTS, np.random.default_rng(5))
    assert (drawn == drawn.round(2)).all() and (drawn == AMOUNTS).mean() < 0.05


def test_the_common_step_of_decimals_is_exact() -> None:
    """By floating point numbers the step of these amounts was .00999999991, or none."""
    for step in (0.01, 0.05, 25.0, 1.37):
        whole = RNG.lognormal(12, 1, 500).round()
        assert common_step((whole * step).round(2)) == step * np.gcd.reduce(np.diff(np.sort(whole)).astype(int))
    assert abs(common_step(RNG.integers(0, 10_000, 500) / 3) - 1 / 3) < 1e-9


def test_new_numbers_end_in_zeros_as_often_as_those_beside_them() -> None:
    """Of the small .9 are whole thousands, of the large .2: so are the new ones, within .05."""
    size = np.concatenate([RNG.uniform(1e4, 1e5, 4000), RNG.uniform(1e6, 1e7, 4000)])
    rounds = RNG.random(8000) < np.repeat([0.9, 0.2], 4000)
    others = np.where(rounds, 1000 * np.rint(size / 1000), np.rint(size))
    new = rounded_as_others(others * 1.0357, others, np.random.default_rng(6))
    for part in (slice(1000, 3000), slice(5000, 7000)):
        assert abs((new[part] % 1000 == 0).mean() - (others[part] % 1000 == 0).mean()) < 0.05
    assert (rounded_as_others(np.full(3, 0.1234), np.array([np.nan, np.pi, np.e]), RNG) == 0.1234).all()  # on no grid
