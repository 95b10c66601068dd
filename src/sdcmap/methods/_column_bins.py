"""The bins of columns, as trees and networks read them: a category, an interval of numbers, or why a number is missing."""

from __future__ import annotations

import numpy as np

from sdcmap.core import Array
from sdcmap.data.microdata import Column, Microdata
from sdcmap.data.missing_patterns import column_state
from sdcmap.kernels.statistics.trees import assign_bins, bin_edges


def bin_column(data: Microdata, name: str, column: Column) -> Array:
    """Return the bin of each value of a column of the file, or of new values of that column."""
    if column.levels is not None:
        return column.values.astype(np.int64)
    bins = assign_bins(column.values, data.view(_edges, name))
    return np.asarray(bins + np.maximum(column_state(column) - 1, 0))


def bin_count(data: Microdata, name: str) -> int:
    """Return the number of bins of a column of the file."""
    column = data.column(name)
    if column.levels is not None:
        return len(column.levels)
    without_reason = len(data.view(_edges, name)) + 2
    return without_reason + (0 if column.reasons is None else int(column.reasons.max(initial=0)))


def _edges(data: Microdata, name: str) -> Array:
    return bin_edges(data.numbers(name))
