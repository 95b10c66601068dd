"""Patterns of missing values: which values of a record are missing, and by which of the reasons that the file states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sdcmap.data.microdata import Column, Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress, count_units


def missing_state(data: Microdata, name: str) -> Array:
    """Return for each record 0 where the value is present, 1 where it is missing, and 1 + r where reason r is stated."""
    return column_state(data.column(name))


def column_state(column: Column) -> Array:
    """Return `missing_state` of the values of a column."""
    if column.levels is None:
        return np.where(np.isnan(column.values), 1 + (0 if column.reasons is None else column.reasons.astype(int)), 0)
    # the null levels follow each other: the first states no reason, the others the reasons in their order
    is_null = column.levels.is_null().to_numpy()
    return np.asarray(np.where(is_null, np.cumsum(is_null), 0)[column.values])


def missing_states(data: Microdata, names: Sequence[str]) -> Array:
    """Return `missing_state` of each column, as an array of records and columns."""
    return np.column_stack([missing_state(data, name) for name in names])


def find_patterns(states: Array, units: Array) -> tuple[Array, Array, Array]:
    """Return the different rows of `states`, the number of each record's row, and how many units have each row.

    units : the unit of each record, 0, 1, ...
    """
    code, _ = compress([np.zeros(len(states), dtype=np.int64), *states.T])
    patterns = states[np.unique(code, return_index=True)[1]]
    return patterns, code, count_units(code, units, len(patterns))
