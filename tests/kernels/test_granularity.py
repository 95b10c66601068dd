"""Grids of numbers: values moved onto a grid equal the floats that lie on it."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.masking.granularity import align_changes_to_grid, common_step, round_like_others, snap_to_grid
from sdcmap.kernels.masking.rare_values import replace_rare_numbers

RNG = np.random.default_rng(4)
AMOUNTS = RNG.lognormal(7, 1, 500).round(2)


def test_snap_to_grid_returns_original_values_exactly() -> None:
    assert (snap_to_grid(AMOUNTS + 1e-12, AMOUNTS) == AMOUNTS).all() and snap_to_grid(np.zeros(1), AMOUNTS)[0] == 0
    quarters = AMOUNTS.round() / 4 + 0.1  # a grid with an offset
    assert (snap_to_grid(quarters + 0.05, quarters) == quarters).all()
    assert (snap_to_grid(AMOUNTS, RNG.normal(size=500)) == AMOUNTS).all()  # no grid


def test_align_changes_to_grid_keeps_values_of_the_original() -> None:
    before = np.where(RNG.random(500) < 0.5, 0.0, AMOUNTS)
    new = np.where(RNG.random(500) < 0.5, before, RNG.permutation(before))
    moved = align_changes_to_grid(new, before)
    assert (moved == new).all() and np.isin(moved, before).all()


def test_rare_numbers_are_replaced_on_the_grid() -> None:
    drawn = replace_rare_numbers(AMOUNTS, AMOUNTS, np.random.default_rng(5))
    assert (drawn == drawn.round(2)).all() and (drawn == AMOUNTS).mean() < 0.05


def test_common_step_of_decimals_is_exact() -> None:
    """Plain floating-point arithmetic gave a step of 0.00999999991 for these amounts, or none."""
    for step in (0.01, 0.05, 25.0, 1.37):
        whole = RNG.lognormal(12, 1, 500).round()
        assert common_step((whole * step).round(2)) == step * np.gcd.reduce(np.diff(np.sort(whole)).astype(int))
    assert abs(common_step(RNG.integers(0, 10_000, 500) / 3) - 1 / 3) < 1e-9


def test_round_like_others_reproduces_the_share_of_round_numbers() -> None:
    """90 % of the small and 20 % of the large numbers are whole thousands; so are the new ones, within 0.05."""
    size = np.concatenate([RNG.uniform(1e4, 1e5, 4000), RNG.uniform(1e6, 1e7, 4000)])
    is_round = RNG.random(8000) < np.repeat([0.9, 0.2], 4000)
    others = np.where(is_round, 1000 * np.rint(size / 1000), np.rint(size))
    new = round_like_others(others * 1.0357, others, np.random.default_rng(6))
    for part in (slice(1000, 3000), slice(5000, 7000)):
        assert abs((new[part] % 1000 == 0).mean() - (others[part] % 1000 == 0).mean()) < 0.05
    assert (round_like_others(np.full(3, 0.1234), np.array([np.nan, np.pi, np.e]), RNG) == 0.1234).all()  # on no grid
