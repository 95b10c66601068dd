"""How many units share a record's combination of categories, and what the record lost: social data at record level."""

from __future__ import annotations

import numpy as np

from sdcmap.core import Array, Microdata
from sdcmap.data.cells import common_codes
from sdcmap.kernels.tables.coding import compress


def units_agreeing(
    masked: Microdata, names: tuple[str, ...], weights: Array | None = None, population: Microdata | None = None
) -> Array:
    """The number of units that agree with each record on every variable it shows.  Seri (2005), section 2: f_y or F_y

    A missing value is a suppressed one: it agrees with all. A unit that hides a variable which the record shows is not
    counted. The units are the masked file's records (each with its weight, if given), or those of `population`.
    """
    rows = len(masked)
    files = masked, masked if population is None else population
    hidden, unit_hides = (np.column_stack([file.missing(name) for name in names]) for file in files)
    codes = [masked.codes(n) if population is None else common_codes(masked, population, n) for n in names]
    units = slice(0 if population is None else rows, None)
    worth = np.ones(len(unit_hides)) if weights is None else weights
    counts = np.zeros(rows)
    patterns, which = np.unique(hidden, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        shown = np.flatnonzero(~pattern)
        mine = np.flatnonzero(which.ravel() == number)
        counted = ~unit_hides[:, shown].any(axis=1)
        if len(shown) == 0:
            counts[mine] = worth.sum()
            continue
        code, _ = compress([codes[place] for place in shown])
        total = np.bincount(code[units][counted], worth[counted], minlength=int(code.max()) + 1)
        counts[mine] = total[code[:rows][mine]]
    return counts


def original_agrees(original: Microdata, masked: Microdata, names: tuple[str, ...], links: Array) -> Array:
    """Whether each record's own original has the released combination: equal, recoded to a new category, or hidden."""
    agree = np.ones(len(masked), dtype=bool)
    for name in names:
        before, after, is_new = _codes(original, masked, name)
        agree &= (before[links] == after) | is_new | masked.missing(name)
    return agree


def record_loss(original: Microdata, masked: Microdata, names: tuple[str, ...], links: Array) -> Array:
    """The information each record lost, the mean over its variables, each from 0 (as it was) to 1 (hidden).

    A category changed to another one of the original: 1 for nominal variables, the distance in ranks over the number of
    steps for ordinal ones, the difference over the range for numeric ones. Recoded to a new, wider category: the share of
    the information -log(f_x / n) that is gone, log(F_y / f_x) / log(n / f_x).
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
        gone = masked.missing(name) & ~original.missing(name)[links]
        loss += np.select([gone, own == after, is_new], [1.0, 0.0, np.clip(share, 0, 1)], np.clip(step, 0, 1))
    return loss / len(names)


def _codes(original: Microdata, masked: Microdata, name: str) -> tuple[Array, Array, Array]:
    """Codes before and after in one alphabet, and where the released category is none of the original's."""
    before, after = np.split(common_codes(original, masked, name).astype(np.int64), [len(original)])
    levels = original.column(name).levels
    same = levels is None or levels is masked.column(name).levels
    return before, after, np.zeros(len(after), dtype=bool) if same else ~np.isin(after, before)
