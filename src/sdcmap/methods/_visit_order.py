"""The order in which a synthesis draws columns, learned from their association."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from sdcmap.core import Array
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.statistics.association import cramers_v
from sdcmap.kernels.statistics.network import MAX_PARENT_GROUPS, group_bins
from sdcmap.methods._column_bins import bin_column, bin_count


def order_by_association(data: Microdata, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns by the sum of Cramér's V with each other column, the largest first; equal ones stay as stated.

    V is computed from at most twelve groups of each column: its frequent categories, or intervals with equally many
    records. So the order tells only what many records have in common.
    """
    groups = {name: _groups(data, name) for name in names}
    total = dict.fromkeys(names, 0.0)
    for first, second in combinations(names, 2):
        pair = groups[first] * MAX_PARENT_GROUPS + groups[second]
        counts = np.bincount(pair, minlength=MAX_PARENT_GROUPS**2).reshape(MAX_PARENT_GROUPS, MAX_PARENT_GROUPS)
        association = cramers_v(counts)
        total[first] += association
        total[second] += association
    return tuple(sorted(names, key=lambda name: -total[name]))


def _groups(data: Microdata, name: str) -> Array:
    """Return the group of each record: of its category, of an interval, or of the reason why its number is missing."""
    bins = bin_column(data, name, data.column(name))
    return np.asarray(group_bins(bins, bin_count(data, name), data.schema[name].kind != "nominal")[bins])
