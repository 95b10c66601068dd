"""The parents of a column in a Bayesian network: the few columns that describe it best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sdcmap.kernels.arrays import Array

MAX_PARENTS = 3
MAX_PARENT_GROUPS = 12  # categories or intervals of a parent


def group_bins(bins: Array, size: int, ordered: bool) -> Array:
    """Return the group of each bin, at most MAX_PARENT_GROUPS: intervals of equal frequency, or frequent ones and a rest.

    >>> group_bins(np.repeat([0, 1, 2], [5, 3, 1]), 3, False).tolist()
    [0, 1, 2]
    """
    if size <= MAX_PARENT_GROUPS:
        return np.arange(size)
    count = np.bincount(bins, minlength=size)
    if ordered:
        before = np.cumsum(count) - count
        return np.asarray(np.minimum(before * MAX_PARENT_GROUPS // max(len(bins), 1), MAX_PARENT_GROUPS - 1))
    group = np.full(size, MAX_PARENT_GROUPS - 1)
    group[np.argsort(-count, kind="stable")[: MAX_PARENT_GROUPS - 1]] = np.arange(MAX_PARENT_GROUPS - 1)
    return group


def find_parents(y: Array, classes: int, columns: Sequence[Array]) -> list[int]:
    """Return the columns, at most MAX_PARENTS, that explain y best by Schwarz's criterion, the strongest first.

    y : codes below `classes`. columns : codes below MAX_PARENT_GROUPS. Each step adds the column with which the
    log-likelihood minus log(n)/2 for each parameter grows most.  Schwarz (1978); Cooper, Herskovits (1992)
    """
    n = len(y)
    parents: list[int] = []
    cell = np.zeros(n, dtype=np.int64)
    best = _criterion(cell, y, classes)
    while len(parents) < MAX_PARENTS:
        scores = {
            j: _criterion(cell * MAX_PARENT_GROUPS + column, y, classes)
            for j, column in enumerate(columns)
            if j not in parents
        }
        chosen = max(scores, key=lambda j: (scores[j], -j), default=-1)
        if chosen < 0 or scores[chosen] <= best:
            break
        best, cell = scores[chosen], cell * MAX_PARENT_GROUPS + columns[chosen]
        parents.append(chosen)
    return parents


def _criterion(cell: Array, y: Array, classes: int) -> float:
    """Return the log-likelihood of y given the cell, minus log(n)/2 for each parameter of the cells that occur."""
    joint = np.bincount(cell * classes + y)
    size = np.bincount(cell)
    joint, size = joint[joint > 0], size[size > 0]
    likelihood = float((joint * np.log(joint)).sum() - (size * np.log(size)).sum())
    return likelihood - 0.5 * float(np.log(len(y))) * (classes - 1) * len(size)
