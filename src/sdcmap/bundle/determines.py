"""Released columns that give a masked one away, although it was masked.

Two ways are looked for, both on the original: an exact linear relation (a total and its parts), and a column whose
value fixes the masked one (age and age group, a household and its region). Time is linear in the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sdcmap.bundle.checks import Check
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array

EXACT = 1e-9  # relative residual of a linear relation that holds exactly
USED = 1e-6  # smallest standardised coefficient of a column that is named as part of the relation
SURPRISING_PAIRS = 20.0  # pairs of records that would differ if the columns were independent


def check_determines(data: Microdata, masked: Sequence[str]) -> Check:
    """No unmasked released column, or linear combination of them, determines a masked one."""
    open_names = [name for name in data.names if name not in masked and name not in data.unreleased]
    relations = [*_linear_relations(data, masked, open_names), *_fixing_columns(data, masked, open_names)]
    if not relations:
        return Check("determines", True, "no unmasked column determines a masked one.")
    told = "; ".join(f"{name!r} is masked, but unmasked {by} it" for name, by in relations)
    return Check("determines", False, f"{told}: mask them too, or drop them from the data.")


def _linear_relations(data: Microdata, masked: Sequence[str], unmasked: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Masked numbers that are exactly a + sum b_j x_j of unmasked ones."""
    known = {name: numbers for name in unmasked if (numbers := _as_numbers(data, name)) is not None}
    for name in masked:
        target = _as_numbers(data, name)
        parts = None if target is None or not known else _exact_parts(target, known)
        if parts:
            yield name, f"{' and '.join(map(repr, parts))} {'gives' if len(parts) == 1 else 'together give'}"


def _as_numbers(data: Microdata, name: str) -> Array | None:
    """The values of a numeric variable, or of categories that are numbers."""
    column = data.column(name)
    if column.levels is None:
        return column.values
    return column.levels.cast(float).to_numpy()[column.values] if column.levels.dtype.is_numeric() else None


def _exact_parts(target: Array, known: dict[str, Array]) -> list[str] | None:
    """Names of the columns that make up `target` exactly, or None."""
    names = sorted(known, key=lambda name: int(np.isnan(known[name]).sum()))
    while names:  # leave out the columns with most missing values until enough complete records remain
        x = np.column_stack([known[name] for name in names])
        complete = ~(np.isnan(x).any(axis=1) | np.isnan(target))
        if complete.sum() >= 2 * (len(names) + 1):
            break
        names.pop()
    if not names:
        return None
    y = _standardised(target[complete])
    if not y.any():
        return None  # constant
    x = _standardised(x[complete])
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None  # too large to have a variance
    coefficients, *_ = np.linalg.lstsq(x, y, rcond=None)
    if np.linalg.norm(y - x @ coefficients) >= EXACT * np.linalg.norm(y):
        return None
    return [name for name, b in zip(names, coefficients, strict=True) if abs(b) > USED]


def _standardised(values: Array) -> Array:
    centred: Array = values - values.mean(axis=0)
    spread = np.sqrt((centred**2).mean(axis=0))
    return centred / np.where(spread > 0, spread, 1.0)


def _fixing_columns(data: Microdata, masked: Sequence[str], unmasked: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Masked columns whose value is the same in all records that agree in one unmasked column."""
    for name in masked:
        for other in unmasked:
            both = ~(data.missing(name) | data.missing(other))
            if _fixes(data.codes(other)[both], data.codes(name)[both]):
                yield name, f"{other!r} fixes"


def _fixes(x: Array, y: Array) -> bool:
    """Whether x fixes y, although so many pairs with equal x would differ in y if the two were independent."""
    if len(x) < 2:
        return False
    representative = np.zeros(int(x.max()) + 1, dtype=y.dtype)
    representative[x] = y
    if (representative[x] != y).any():
        return False
    groups = np.bincount(x).astype(float)
    shares = np.bincount(y) / len(y)
    pairs = (groups * (groups - 1)).sum() / 2
    return bool(pairs * (1 - (shares**2).sum()) >= SURPRISING_PAIRS)
