"""Precision as the inverse of a mean squared error: R = 1/MSE and U = 1/MSE of Duncan et al. (2001)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def inverse_of_mean(squared_errors: Array) -> tuple[float, float | None]:
    """R = 1/mean(e^2) and its delta-method standard error R^2 sd(e^2)/sqrt(count); infinite where all errors are 0.

    The mean of 1/e^2 would be wrong: with true R = 4 the mean of 200 such values has median 1,552.
    """
    count = len(squared_errors)
    mean = float(np.mean(squared_errors))
    if mean == 0:
        return float("inf"), None
    if count < 2:
        return 1 / mean, None
    return 1 / mean, float(np.std(squared_errors, ddof=1) / np.sqrt(count) / mean**2)
