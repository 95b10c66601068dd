"""Propose edit rules that hold in a file without exception and are unlikely to hold by chance."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from sdcmap.core import Array, Microdata
from sdcmap.data.amounts import amounts, has_numbers

MIN_SUPPORT_SHARE = 0.01  # share of the records that meet the condition of a rule, at the least ...
MIN_SUPPORT_RECORDS = 30  # ... and their number
MIN_EXPECTED_VIOLATIONS = 20.0  # expected if the two columns were independent: fewer could be chance
MAX_LEVELS = 50  # categories of a column; a rule about one of many categories is rarely useful
MAX_RULES = 20  # proposed, those with the most expected violations first; more nobody would review


def propose_edits(data: Microdata) -> list[str]:
    """Return rules of two columns for a person to review: a category, or a bound on a number, that implies a category.

    At least 30 records and 1 % of the file meet the condition of a rule, no record violates it, and at least 20 would if
    its columns were independent. A bound is a value of the file, so proposals must not be published.

    >>> from sdcmap import read
    >>> import polars as pl
    >>> ages = list(range(10, 70)) * 10
    >>> frame = pl.DataFrame({"age": ages, "marital": ["never" if age < 18 or age % 2 else "married" for age in ages]})
    >>> propose_edits(read(frame, keys="marital", numeric="age"))
    ['age < 18 -> marital = "never"']
    """
    names = [v.name for v in data.schema.variables if v.role in ("key", "sensitive", "other", None)]
    categorical = [
        name for name in names if data.column(name).levels is not None and data.level_count(name) <= MAX_LEVELS
    ]
    least = max(MIN_SUPPORT_RECORDS, MIN_SUPPORT_SHARE * len(data))
    rules: list[tuple[float, str]] = []
    for name, implied in combinations([name for name in categorical if not has_numbers(data.column(name))], 2):
        table = _count_known(data, name, implied)
        rules += [*_by_category(data, name, implied, table, least), *_by_category(data, implied, name, table.T, least)]
    for name in names:
        if has_numbers(data.column(name)):
            rules += [
                rule for implied in categorical if implied != name for rule in _by_bound(data, name, implied, least)
            ]
    rules.sort(key=lambda rule: -rule[0])
    return [text for _, text in rules[:MAX_RULES]]


def _count_known(data: Microdata, name: str, other: str) -> Array:
    """Return the table of two columns with the counts of missing values set to 0."""
    shape = data.level_count(name), data.level_count(other)
    cells = data.codes(name).astype(np.int32) * np.int32(shape[1]) + data.codes(other)
    table = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    for column, axis in ((name, table), (other, table.T)):
        levels = data.column(column).levels
        if levels is not None and levels.null_count():
            axis[levels.is_null().to_numpy()] = 0
    return table


def _by_category(data: Microdata, name: str, implied: str, table: Array, least: float) -> Iterator[tuple[float, str]]:
    """Yield rules "category of one column -> category of the other", each with its expected violations."""
    rows, shares = table.sum(axis=1), table.sum(axis=0) / max(table.sum(), 1)
    for code in np.flatnonzero((rows >= least) & ((table > 0).sum(axis=1) == 1)).tolist():
        only = int(table[code].argmax())
        expected = rows[code] * (1 - shares[only])
        if expected >= MIN_EXPECTED_VIOLATIONS:
            yield float(expected), f"{_format_equality(data, name, code)} -> {_format_equality(data, implied, only)}"


def _by_bound(data: Microdata, name: str, implied: str, least: float) -> Iterator[tuple[float, str]]:
    """Yield rules "number below (above) a bound -> category", each with its expected violations."""
    known = ~(data.missing(name) | data.missing(implied))
    x, code = amounts(data, name)[known], data.codes(implied)[known].astype(np.int64)
    count = np.bincount(code, minlength=1)
    if (count > 0).sum() < 2:
        return
    ranked = np.sort(x)
    for sign, side in (("<", 1.0), (">", -1.0)):
        # The category with the most extreme value reaches beyond all others; the bound is the extreme of the others.
        extreme = np.full(len(count), np.inf)
        np.minimum.at(extreme, code, side * x)
        first = int(extreme.argmin())
        bound = side * np.delete(extreme, first).min()
        support = np.searchsorted(ranked, bound) if side > 0 else len(x) - np.searchsorted(ranked, bound, side="right")
        expected = float(support * (1 - count[first] / len(x)))
        if support >= least and expected >= MIN_EXPECTED_VIOLATIONS:
            yield expected, f"{_quote(name)} {sign} {bound:.15g} -> {_format_equality(data, implied, first)}"


def _quote(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def _format_equality(data: Microdata, name: str, code: int) -> str:
    """Return a comparison with a category as a rule writes it: texts in quotes, numbers not."""
    column = data.column(name)
    assert column.levels is not None
    level = column.levels[code]
    return f"{_quote(name)} = " + (f"{float(level):.15g}" if has_numbers(column) else f'"{level}"')
