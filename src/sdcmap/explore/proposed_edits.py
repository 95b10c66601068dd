"""Edit rules that hold in a file without exception, although chance would break them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from sdcmap.core import Array, Microdata
from sdcmap.data.amounts import amounts, holds_numbers

SUPPORT = 0.01  # smallest share of the records that call for a proposed rule
FEWEST = 30  # ... and smallest number of them
SURPRISING = 20.0  # records that would break it if its two columns were independent
MOST_LEVELS = 50  # of a column whose categories are looked at
MOST = 20  # rules that are proposed, the most surprising first


def proposed_edits(data: Microdata) -> list[str]:
    """Rules of two columns for a person to judge: a category, or numbers below or above a bound, that fix a category.

    Each is met by at least 30 records and a hundredth of the file, broken by none, and would be broken by 20 if its
    columns were independent. A bound is a value of the file, so a proposal is not for publication.

    >>> from sdcmap import read
    >>> import polars as pl
    >>> ages = list(range(10, 70)) * 10
    >>> frame = pl.DataFrame({"age": ages, "marital": ["never" if age < 18 or age % 2 else "married" for age in ages]})
    >>> proposed_edits(read(frame, keys="marital", numeric="age"))
    ['age < 18 -> marital = "never"']
    """
    plain = [v.name for v in data.schema.variables if v.role in ("key", "sensitive", "other", None)]
    named = [name for name in plain if data.column(name).levels is not None and data.level_count(name) <= MOST_LEVELS]
    least = max(FEWEST, SUPPORT * len(data))
    found: list[tuple[float, str]] = []
    for name, fixed in combinations([name for name in named if not holds_numbers(data.column(name))], 2):
        table = _known_table(data, name, fixed)
        found += [*_by_category(data, name, fixed, table, least), *_by_category(data, fixed, name, table.T, least)]
    for name in plain:
        if holds_numbers(data.column(name)):
            found += [rule for fixed in named if fixed != name for rule in _bounded(data, name, fixed, least)]
    found.sort(key=lambda rule: -rule[0])
    return [text for _, text in found[:MOST]]


def _known_table(data: Microdata, name: str, other: str) -> Array:
    """The counts of two columns, those of missing values set to 0."""
    shape = data.level_count(name), data.level_count(other)
    cells = data.codes(name).astype(np.int32) * np.int32(shape[1]) + data.codes(other)
    table = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    for column, axis in ((name, table), (other, table.T)):
        levels = data.column(column).levels
        if levels is not None and levels.null_count():
            axis[levels.is_null().to_numpy()] = 0
    return table


def _by_category(data: Microdata, name: str, fixed: str, table: Array, least: float) -> Iterator[tuple[float, str]]:
    """Categories of one column in which the other has one category only, with the number that would break the rule."""
    rows, shares = table.sum(axis=1), table.sum(axis=0) / max(table.sum(), 1)
    for code in np.flatnonzero((rows >= least) & ((table > 0).sum(axis=1) == 1)).tolist():
        only = int(table[code].argmax())
        surprise = rows[code] * (1 - shares[only])
        if surprise >= SURPRISING:
            yield float(surprise), f"{_is(data, name, code)} -> {_is(data, fixed, only)}"


def _bounded(data: Microdata, name: str, fixed: str, least: float) -> Iterator[tuple[float, str]]:
    """Bounds of a number below or above which the other column has one category only."""
    both = ~(data.missing(name) | data.missing(fixed))
    x, code = amounts(data, name)[both], data.codes(fixed)[both].astype(np.int64)
    count = np.bincount(code, minlength=1)
    if (count > 0).sum() < 2:
        return
    ranked = np.sort(x)
    for sign, side in (("<", 1.0), (">", -1.0)):
        nearest = np.full(len(count), np.inf)
        np.minimum.at(nearest, code, side * x)
        first = int(nearest.argmin())  # the one category beyond the first value of all others
        bound = side * np.delete(nearest, first).min()
        called = np.searchsorted(ranked, bound) if side > 0 else len(x) - np.searchsorted(ranked, bound, side="right")
        surprise = float(called * (1 - count[first] / len(x)))
        if called >= least and surprise >= SURPRISING:
            yield surprise, f"{_column(name)} {sign} {bound:.15g} -> {_is(data, fixed, first)}"


def _column(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def _is(data: Microdata, name: str, code: int) -> str:
    """A comparison with a category as a rule writes it: a number as it is, a text in quotes."""
    column = data.column(name)
    assert column.levels is not None
    level = column.levels[code]
    return f"{_column(name)} = " + (f"{float(level):.15g}" if holds_numbers(column) else f'"{level}"')
