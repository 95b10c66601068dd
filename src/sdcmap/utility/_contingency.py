"""Distances between two tables of counts, and what one table tells: entropy and association."""

from __future__ import annotations

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit


@jit
def hellinger(before: Array, after: Array) -> float:
    """H = sqrt(1/2 sum (sqrt f - sqrt g)^2), f and g the relative frequencies.  GKS (2003), section 2.2"""
    first, second = before.sum(), after.sum()
    by_first, by_second = 1 / np.sqrt(first), 1 / np.sqrt(second)
    total = 0.0
    for i in range(len(before)):
        if before[i] != after[i] or first != second:
            total += (np.sqrt(before[i]) * by_first - np.sqrt(after[i]) * by_second) ** 2
    return float(np.sqrt(min(0.5 * total, 1.0)))  # of tables that share no cell rounding makes more of it


@jit
def total_variation(before: Array, after: Array) -> float:
    """TV = 1/2 sum |f - g|, f and g the relative frequencies."""
    first, second = before.sum(), after.sum()
    total = 0.0
    for i in range(len(before)):
        total += abs(before[i] / first - after[i] / second)
    return 0.5 * total


@jit
def entropy(count: Array) -> float:
    """Shannon entropy -sum p log p of the relative frequencies, in nats."""
    total = count.sum()
    nats = 0.0
    for i in range(len(count)):
        if count[i] > 0:
            nats -= count[i] / total * np.log(count[i] / total)
    return nats


def mean_square_contingency(table: Array) -> float:
    """phi^2 = chi^2 / n of a two-way table: sum f_ij^2 / (f_i. f_.j) - 1."""
    share = table / table.sum()
    expected = share.sum(axis=1, keepdims=True) * share.sum(axis=0, keepdims=True)
    met = expected > 0
    return max(0.0, float((share[met] ** 2 / expected[met]).sum() - 1))


def contingency_coefficient(table: Array) -> float:
    """Pearson's C = sqrt(chi^2 / (chi^2 + n)) of a two-way table: 0 independent, below 1 always."""
    phi2 = mean_square_contingency(table)
    return float(np.sqrt(phi2 / (1 + phi2)))


def cramers_v(table: Array) -> float:
    """V = sqrt(phi^2 / (min(rows, columns) - 1)), rows and columns that occur; 0 where one variable is constant."""
    least = min(int((table.sum(axis=axis) > 0).sum()) for axis in (0, 1)) - 1
    return float(np.sqrt(mean_square_contingency(table) / least)) if least > 0 else 0.0
