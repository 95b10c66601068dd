"""The power of ten, and the step, that numbers were rounded to."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array

COARSEST, FINEST = 6, -9  # powers of ten that are tried
ENOUGH = 1000  # differences that settle a common step
EXACT = 2.0**50  # steps up to which floating point numbers tell neighbors apart
BESIDE, AT_LEAST = 0.05, 10  # of the values, on each side of a new one, among which the model of its zeros is; how many
MOST_ZEROS = 6  # that are told apart


def granularity(values: Array, storage: str = "Float64") -> int | None:
    """The largest k in 6 .. -9 for which every value is a multiple of 10^k; None: there is none.

    >>> granularity(np.array([1.5, 20.0, 3.25]))
    -2
    >>> granularity(np.array([3000.0, 12000.0]))
    3
    """
    known = values[~np.isnan(values)]
    if not known.any():
        return 0 if len(known) else None
    precision = 4 * np.finfo(np.float32 if storage == "Float32" else np.float64).eps
    for k in range(COARSEST, FINEST - 1, -1):
        scaled = in_steps(known, k)
        if np.all(np.abs(scaled - np.rint(scaled)) <= precision * np.abs(scaled)):
            return k
    return None


def in_steps(values: Array, k: int) -> Array:
    return values / 10.0**k if k >= 0 else values * 10.0**-k


def common_step(values: Array) -> float:
    """The greatest common divisor of all differences; 0: there is none. Exact for numbers of up to nine decimals.

    >>> common_step(np.array([0.012, 0.018, 0.030]))
    0.006
    """
    known = np.unique(values[np.isfinite(values)])
    k = granularity(known)
    if k is None or np.abs(in_steps(known, k)).max(initial=0.0) > EXACT:
        return _common_step_within_rounding(known)
    steps = np.rint(in_steps(known, k)).astype(np.int64)
    return float(_from_steps(np.gcd.reduce(np.diff(steps)), k))


def _common_step_within_rounding(known: Array) -> float:
    """The same of sorted numbers on no decimal grid, such as thirds, by Euclid's algorithm."""
    if len(known) < 2:
        return 0.0
    error = 1e-15 * float(np.abs(known).max())
    gaps = np.diff(known)
    gaps = np.sort(gaps[gaps > 1e3 * error])
    gaps = np.concatenate([gaps[:ENOUGH], gaps[:: max(1, len(gaps) // ENOUGH)]])
    while len(gaps):
        step = float(gaps.min())
        if step <= 1e3 * error:
            return 0.0
        rest = np.abs(gaps - step * np.rint(gaps / step))
        left = rest[rest > np.maximum(4 * error * gaps / step, 1e-6 * step)]
        if len(left) == 0:
            return step
        gaps = np.unique(np.append(left, step))
    return 0.0


def _from_steps(steps: Array, k: int) -> Array:
    return (steps * 10.0**k if k >= 0 else steps / 10.0**-k) + 0.0  # -0.0 becomes 0.0


def in_decimals(values: Array, k: int) -> Array:
    """The values rounded to multiples of 10^k, each the number that its decimals are read as; no -0.

    >>> in_decimals(np.array([0.1 + 0.2, -1e-13, 1249.0]), -2).tolist()
    [0.3, 0.0, 1249.0]
    """
    return _from_steps(np.rint(in_steps(values, k)), k)


def on_grid_of(values: Array, original: Array) -> Array:
    """The nearest numbers on the grid of the original, written as it writes its own: a value that it has is that value,
    and not one beside it by an error of arithmetic. As they are where the original lies on no grid.

    >>> on_grid_of(np.array([0.13, 7.0]), np.array([1234.56, 0.06, 10.02])).tolist()
    [0.12, 7.02]
    """
    step = common_step(original)
    if step <= 0:
        return values
    first = float(np.nanmin(original))
    near = first + step * np.rint((values - first) / step)
    k = granularity(original)
    return near if k is None else in_decimals(near, k)


def in_step_with(new: Array, before: Array) -> Array:
    """New values where some stayed as they were, moved onto the grid of those before; so no digit tells which are new.

    >>> in_step_with(np.array([50.0, 100.0, 163.0]), np.array([50.0, 100.0, 200.0])).tolist()
    [50.0, 100.0, 150.0]
    """
    changed = (new != before) & ~np.isnan(new)
    if not changed.any() or not (new == before).any():
        return new
    return np.where(changed, on_grid_of(new, before), new)


def rounded_as_others(new: Array, others: Array, rng: Generator) -> Array:
    """New values that end in as many zeros as others do: each as one of the next 5 % below or above it, drawn at random.

    People round: where most incomes are whole thousands, one that is none was masked. Others on no decimal grid: as it is.

    >>> rounded_as_others(np.array([1234.0]), np.arange(1100.0, 2000, 100), np.random.default_rng(1)).tolist()
    [1200.0]
    """
    known = np.sort(others[~np.isnan(others)])
    k = granularity(known)
    if k is None:
        return new
    reach = max(AT_LEAST, round(BESIDE * len(known)))
    beside = np.searchsorted(known, new) + rng.integers(-reach, reach, len(new))
    ends = 10.0 ** _zeros(np.rint(in_steps(known[np.clip(beside, 0, len(known) - 1)], k)))
    return _from_steps(np.rint(in_steps(new, k) / ends) * ends, k)


def _zeros(whole: Array) -> Array:
    """In how many zeros whole numbers end; 0 itself in none."""
    powers = 10.0 ** np.arange(1, MOST_ZEROS + 1)
    return np.asarray(((whole[:, np.newaxis] % powers == 0) & (whole[:, np.newaxis] != 0)).sum(axis=1))
