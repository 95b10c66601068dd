"""The association of two categorical variables, from the table of their counts."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array


def mean_square_contingency(table: Array) -> float:
    """Return phi^2 = chi^2 / n of a two-way table: sum f_ij^2 / (f_i. f_.j) - 1."""
    share = table / table.sum()
    expected = share.sum(axis=1, keepdims=True) * share.sum(axis=0, keepdims=True)
    occurs = expected > 0
    return max(0.0, float((share[occurs] ** 2 / expected[occurs]).sum() - 1))


def cramers_v(table: Array) -> float:
    """Return V = sqrt(phi^2 / (min(rows, columns) - 1)) over rows and columns that occur; 0 for a constant variable.

    >>> cramers_v(np.array([[3, 0], [0, 5]])), cramers_v(np.array([[2, 2], [3, 3]]))
    (1.0, 0.0)
    """
    least = min(int((table.sum(axis=axis) > 0).sum()) for axis in (0, 1)) - 1
    return float(np.sqrt(mean_square_contingency(table) / least)) if least > 0 else 0.0
