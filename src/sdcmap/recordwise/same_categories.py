"""Groups of released records and the units that agree with them on categories, such as the economic activity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Microdata, SchemaError
from sdcmap.data.cells import common_codes
from sdcmap.data.label_layers import read_labels, spell_out_labels
from sdcmap.kernels.tables.coding import compress


class CategoryCodes(NamedTuple):
    """One category in both files; -1 is missing, and missing in a released record agrees with every unit."""

    unit: Array
    released: Array
    matches: Array | None  # (unit code, released code): whether they agree; None: where the codes are equal


def group_by_categories(
    original: Microdata, masked: Microdata, units: Microdata, names: Sequence[str], rows: Array, unit_rows: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield the groups of records that show the same categories, with the units that agree with them.

    rows, unit_rows : the judged rows of the masked file and the rows of `units` to compare; groups are numbered within
    them. A released category that stands for several original ones agrees with all of them.
    """
    if absent := [name for name in names if name not in masked.names]:
        raise SchemaError(f"the masked file has no column {', '.join(map(repr, absent))} to compare within.")
    masked = spell_out_labels(original, masked, names)
    codes = [_codes(masked, units, name) for name in names]
    codes = [c._replace(unit=c.unit[unit_rows], released=c.released[rows]) for c in codes]
    patterns, which = np.unique(np.column_stack([c.released for c in codes]), axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    records = np.split(order, np.cumsum(np.bincount(which.ravel()))[:-1])
    units_of = _units_by_pattern(codes, patterns)
    for number, pattern in enumerate(patterns):
        # A suppressed category agrees with all units, so its units are no cell of their own.
        complete = (pattern >= 0).all()
        yield records[number], units_of[number] if units_of and complete else _agreeing_units(codes, pattern)


def _units_by_pattern(codes: Sequence[CategoryCodes], patterns: Array) -> list[Array]:
    """Return the units with exactly the categories of each pattern; none where categories do not agree by equality."""
    if any(c.matches is not None for c in codes):
        return []
    columns = zip((c.unit for c in codes), patterns.T, strict=True)
    cell, _ = compress([np.concatenate(column) + 1 for column in columns])
    unit_cell, pattern_cell = np.split(cell, [len(codes[0].unit)])
    order = np.argsort(unit_cell, kind="stable")
    first, last = (np.searchsorted(unit_cell[order], pattern_cell, side) for side in ("left", "right"))
    return [order[start:stop] for start, stop in zip(first, last, strict=True)]


def _agreeing_units(codes: Sequence[CategoryCodes], pattern: Array) -> Array:
    """Return the units that agree with a pattern on every category that it shows."""
    agree = np.ones(len(codes[0].unit), dtype=bool)
    for category, released in zip(codes, pattern, strict=True):
        if released < 0:
            continue
        if category.matches is None:
            agree &= category.unit == released
        else:
            agree &= (category.unit >= 0) & category.matches[category.unit, released]
    return np.flatnonzero(agree)


def _codes(masked: Microdata, units: Microdata, name: str) -> CategoryCodes:
    read = read_labels(units, masked, name)
    if read is None:
        unit, released = np.split(common_codes(units, masked, name).astype(np.int64), [len(units)])
        hidden, hides = units.missing(name), masked.missing(name)
        return CategoryCodes(np.where(hidden, -1, unit), np.where(hides, -1, released), None)
    if read.is_mixed:
        return CategoryCodes(read.value, read.label, read.matches)
    # Each value lies behind one label at most: replace it by that label.
    has_label = read.matches.any(axis=1)
    label = np.append(np.where(has_label, read.matches.argmax(axis=1), -1), -1)
    return CategoryCodes(label[read.value], read.label, None)
