"""The power of ten, and the step, that numbers were rounded to."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array

COARSEST, FINEST = 6, -9  # powers of ten that are tried
ENOUGH_GAPS = 1000  # differences that suffice to find a common step
MAX_EXACT_STEPS = 2.0**50  # beyond this many steps floating-point numbers cannot separate neighbors reliably
NEIGHBOR_SHARE, MIN_NEIGHBORS = (
    0.05,
    10,
)  # share of the values on each side that serve as a model, and their least number
MAX_ZEROS = 6  # trailing zeros that are distinguished


def granularity(values: Array, storage: str = "Float64") -> int | None:
    """Return the largest k in 6 .. -9 for which every value is a multiple of 10^k, or None.

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
    """Return the values in units of 10^k."""
    return values / 10.0**k if k >= 0 else values * 10.0**-k


def common_step(values: Array) -> float:
    """Return the greatest common divisor of all differences, or 0 if there is none; exact up to nine decimals.

    >>> common_step(np.array([0.012, 0.018, 0.030]))
    0.006
    """
    known = np.unique(values[np.isfinite(values)])
    k = granularity(known)
    if k is None or np.abs(in_steps(known, k)).max(initial=0.0) > MAX_EXACT_STEPS:
        return _common_step_within_rounding(known)
    steps = np.rint(in_steps(known, k)).astype(np.int64)
    return float(_from_steps(np.gcd.reduce(np.diff(steps)), k))


def _common_step_within_rounding(known: Array) -> float:
    """Return the common step of sorted numbers on no decimal grid, such as thirds, by Euclid's algorithm."""
    if len(known) < 2:
        return 0.0
    error = 1e-15 * float(np.abs(known).max())
    gaps = np.diff(known)
    gaps = np.sort(gaps[gaps > 1e3 * error])
    # The smallest gaps limit the step most; an even sample of the others confirms it.
    gaps = np.concatenate([gaps[:ENOUGH_GAPS], gaps[:: max(1, len(gaps) // ENOUGH_GAPS)]])
    while len(gaps):
        step = float(gaps.min())
        if step <= 1e3 * error:
            return 0.0
        # Euclid: continue with the remainders that are not rounding errors, until none is left.
        rest = np.abs(gaps - step * np.rint(gaps / step))
        left = rest[rest > np.maximum(4 * error * gaps / step, 1e-6 * step)]
        if len(left) == 0:
            return step
        gaps = np.unique(np.append(left, step))
    return 0.0


def _from_steps(steps: Array, k: int) -> Array:
    return (steps * 10.0**k if k >= 0 else steps / 10.0**-k) + 0.0  # -0.0 becomes 0.0


def round_to_decimals(values: Array, k: int) -> Array:
    """Round to multiples of 10^k, each the float that its decimals are parsed as; -0 becomes 0.

    >>> round_to_decimals(np.array([0.1 + 0.2, -1e-13, 1249.0]), -2).tolist()
    [0.3, 0.0, 1249.0]
    """
    return _from_steps(np.rint(in_steps(values, k)), k)


def snap_to_grid(values: Array, original: Array) -> Array:
    """Move the values to the nearest points of the grid that the original lies on.

    The results are written as the original writes its own values: equal values are equal floats, without an error of
    arithmetic. Values are unchanged if the original lies on no grid.

    >>> snap_to_grid(np.array([0.13, 7.0]), np.array([1234.56, 0.06, 10.02])).tolist()
    [0.12, 7.02]
    """
    step = common_step(original)
    if step <= 0:
        return values
    first = float(np.nanmin(original))
    near = first + step * np.rint((values - first) / step)
    k = granularity(original)
    return near if k is None else round_to_decimals(near, k)


def align_changes_to_grid(new: Array, before: Array) -> Array:
    """Move changed values onto the grid of the old ones where some values stayed the same.

    Otherwise the last digits would show which values were changed.

    >>> align_changes_to_grid(np.array([50.0, 100.0, 163.0]), np.array([50.0, 100.0, 200.0])).tolist()
    [50.0, 100.0, 150.0]
    """
    changed = (new != before) & ~np.isnan(new)
    if not changed.any() or not (new == before).any():
        return new
    return np.where(changed, snap_to_grid(new, before), new)


def round_like_others(new: Array, others: Array, rng: Generator) -> Array:
    """Round new values so that they end in as many zeros as others do.

    People round: where most incomes are whole thousands, one that is not was probably masked. Each new value takes the
    number of zeros of one of the nearest 5 % of the others below or above it, drawn at random. Values are unchanged if the
    others lie on no decimal grid.

    >>> round_like_others(np.array([1234.0]), np.arange(1100.0, 2000, 100), np.random.default_rng(1)).tolist()
    [1200.0]
    """
    known = np.sort(others[~np.isnan(others)])
    k = granularity(known)
    if k is None:
        return new
    reach = max(MIN_NEIGHBORS, round(NEIGHBOR_SHARE * len(known)))
    model = np.searchsorted(known, new) + rng.integers(-reach, reach, len(new))
    unit = 10.0 ** _trailing_zeros(np.rint(in_steps(known[np.clip(model, 0, len(known) - 1)], k)))
    return _from_steps(np.rint(in_steps(new, k) / unit) * unit, k)


def _trailing_zeros(whole: Array) -> Array:
    """Return the number of trailing zeros of whole numbers; none for 0 itself."""
    powers = 10.0 ** np.arange(1, MAX_ZEROS + 1)
    return np.asarray(((whole[:, np.newaxis] % powers == 0) & (whole[:, np.newaxis] != 0)).sum(axis=1))
