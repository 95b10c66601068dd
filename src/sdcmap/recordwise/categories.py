"""Record-level protection of categorical data: units with the same combination of categories, and information loss."""

from __future__ import annotations

import numpy as np

from sdcmap.core import Array, Microdata
from sdcmap.data.cells import common_codes
from sdcmap.kernels.tables.coding import compress


def units_agreeing(
    masked: Microdata, names: tuple[str, ...], weights: Array | None = None, population: Microdata | None = None
) -> Array:
    """Return the number of units that agree with each record on every variable it shows: f_y or F_y in Seri (2005),
    section 2.

    A missing value is a suppressed one and agrees with all. A unit is not counted if it hides a variable that the
    record shows. The units are the masked file's records (each with its weight, if given), or those of `population`.
    """
    rows = len(masked)
    files = masked, masked if population is None else population
    hidden, unit_hides = (np.column_stack([file.missing(name) for name in names]) for file in files)
    codes = [masked.codes(n) if population is None else common_codes(masked, population, n) for n in names]
    units = slice(0 if population is None else rows, None)
    unit_weight = np.ones(len(unit_hides)) if weights is None else weights
    counts = np.zeros(rows)
    patterns, which = np.unique(hidden, axis=0, return_inverse=True)
    # Records that show the same variables are counted together.
    for number, pattern in enumerate(patterns):
        shown = np.flatnonzero(~pattern)
        records = np.flatnonzero(which.ravel() == number)
        counted = ~unit_hides[:, shown].any(axis=1)
        if len(shown) == 0:
            counts[records] = unit_weight.sum()
            continue
        code, _ = compress([codes[index] for index in shown])
        total = np.bincount(code[units][counted], unit_weight[counted], minlength=int(code.max()) + 1)
        counts[records] = total[code[:rows][records]]
    return counts


def original_agrees(original: Microdata, masked: Microdata, names: tuple[str, ...], links: Array) -> Array:
    """Return whether each record's own original has the released combination: equal, recoded to a new category, or
    hidden.
    """
    agree = np.ones(len(masked), dtype=bool)
    for name in names:
        before, after, is_new = _codes(original, masked, name)
        agree &= (before[links] == after) | is_new | masked.missing(name)
    return agree


def record_loss(original: Microdata, masked: Microdata, names: tuple[str, ...], links: Array) -> Array:
    """Return the information lost by each record: the mean over its variables, each from 0 (unchanged) to 1 (hidden).

    A category changed to another category of the original loses 1 if nominal, the distance in ranks over the number of
    steps if ordinal, and the difference over the range if numeric. A value recoded to a new, wider category loses the
    share log(F_y / f_x) / log(n / f_x) of its information -log(f_x / n).
    """
    loss = np.zeros(len(masked))
    for name in names:
        before, after, is_new = _codes(original, masked, name)
        own = before[links]
        if original.column(name).levels is None:
            x, y = original.numbers(name)[links], masked.numbers(name)
            width = np.ptp(x[~np.isnan(x)]) if (~np.isnan(x)).any() else 0.0
            step = np.nan_to_num(np.abs(y - x) / width if width > 0 else (y != x).astype(float), nan=1.0)
        elif original.schema[name].kind == "ordinal":
            steps = max(1, original.level_count(name) - int(original.missing(name).any()) - 1)
            step = np.abs(own.astype(np.int64) - after) / steps
        else:
            step = (own != after).astype(float)
        width_before, width_after = np.bincount(before)[own], np.bincount(after)[after]
        share = np.log(width_after / width_before) / np.log(np.maximum(len(before) / width_before, 1 + 1e-9))
        suppressed = masked.missing(name) & ~original.missing(name)[links]
        loss += np.select([suppressed, own == after, is_new], [1.0, 0.0, np.clip(share, 0, 1)], np.clip(step, 0, 1))
    return loss / len(names)


def _codes(original: Microdata, masked: Microdata, name: str) -> tuple[Array, Array, Array]:
    """Return the codes before and after, shared by both files, and where the released category is new."""
    before, after = np.split(common_codes(original, masked, name).astype(np.int64), [len(original)])
    levels = original.column(name).levels
    same = levels is None or levels is masked.column(name).levels
    return before, after, np.zeros(len(after), dtype=bool) if same else ~np.isin(after, before)
