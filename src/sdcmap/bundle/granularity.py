"""Numbers as the original would have written them: its granularity, its type, none of its user-missing codes.

Decimals that the original never had would tell masked cells from unmasked ones.
"""

from __future__ import annotations

import numpy as np

from sdcmap.data.schema import Variable
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.granularity import granularity, in_decimals

WHOLE = 2.0**53  # beyond this a float64 no longer tells neighbouring whole numbers apart


def like_the_original(masked: Array, original: Array, variable: Variable) -> Array:
    """Masked numbers rounded to the original's granularity, inside its type and off its user-missing codes."""
    k = granularity(original, variable.storage)
    rounded = masked if k is None else in_decimals(masked, k)
    rounded = _inside_type(rounded, variable.storage, k)
    rounded = _off_missing_codes(rounded, masked, variable, None if k is None else 10.0**k)
    return rounded.astype(np.float32).astype(np.float64) if variable.storage == "Float32" else rounded


def _inside_type(values: Array, storage: str, k: int | None) -> Array:
    if not storage.startswith(("Int", "UInt")):
        return values
    limits = np.iinfo(storage.lower())
    step = 10.0 ** max(k or 0, 0)
    low, high = max(float(limits.min), -WHOLE), min(float(limits.max), WHOLE)
    return np.clip(values, np.ceil(low / step) * step, np.floor(high / step) * step)


def _off_missing_codes(values: Array, before: Array, variable: Variable, step: float | None) -> Array:
    """A masked number that came to lie on a user-missing code is moved to the nearest number beside the codes."""
    for low, high in _merged(variable, step or 0.0):
        hit = (values >= low) & (values <= high)
        if hit.any():
            below = low - step if step else np.nextafter(low, -np.inf)
            above = high + step if step else np.nextafter(high, np.inf)
            upwards = np.isinf(low) | (~np.isinf(high) & (before - low > high - before))
            values = np.where(hit, np.where(upwards, above, below), values)
    return values


def _merged(variable: Variable, step: float) -> list[tuple[float, float]]:
    """The user-missing numbers as intervals, those one step apart joined."""
    ends = [code if isinstance(code, tuple) else (code, code) for code in variable.missing]
    intervals = sorted((float(a), float(b)) for a, b in ends if not isinstance(a, str) and not isinstance(b, str))
    merged: list[tuple[float, float]] = []
    for low, high in intervals:
        if merged and low <= merged[-1][1] + step:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged
