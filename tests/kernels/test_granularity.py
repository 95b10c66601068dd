"""Grids of numbers: what is moved onto one is written as the numbers that lie on it."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.masking.granularity import in_step_with, on_grid_of
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
