"""Find columns that repeat what another column says: indicators, other codes of the same categories, squares; and sets of
indicators of which exactly one is 1. Formulas between amounts are found in `data.column_formulas`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sdcmap.core import Array

MAX_CATEGORIES = 2000  # columns with more values are not compared as categories
MIN_REPEATS = 30  # records whose value another record has; with fewer, two columns may agree by chance
MIN_RECORDS_OF_INDICATOR = 10  # with each of its two values; a rarer one may be a split of another column by chance
MAX_COLUMNS = 200  # that are compared with each other; the work grows with the square
MIN_SET_SIZE = 3  # indicators in a set of which one is 1; two of them are each other's reverse
POWERS = (2, 3)
POWER_SCALES = (1.0, 0.1, 0.01, 0.001, 0.0001)  # such as age**2 / 100
MAX_NUMBERS = 60  # numeric columns that are tried as powers of each other
TRIAL_RECORDS = 20  # a power is tried on these first


@dataclass(frozen=True)
class CodedColumn:
    """One column as codes of its distinct values, -1 where it is missing.

    is_ordered : the codes follow the order of numbers, so that a split of them means something. is_text : it has texts.
    """

    codes: Array
    count: int
    is_ordered: bool
    is_text: bool


@dataclass(frozen=True)
class Computed:
    """What a column is computed from, and how, in words without data values."""

    source: str
    words: str


def find_recodes(columns: Mapping[str, CodedColumn]) -> dict[str, Computed]:
    """Return the columns that another one determines: indicators of one category, splits, and other codes.

    Where two columns determine each other, texts are kept before codes, and the first before the second.

    >>> region = np.tile([0, 1, 2], 40)
    >>> columns = {"region": CodedColumn(region, 3, False, True), "south": CodedColumn(region % 2, 2, True, False)}
    >>> find_recodes(columns)["south"].words
    'an indicator of one of the 3 categories of region'
    """
    names = [name for name, column in columns.items() if 1 < column.count <= MAX_CATEGORIES][:MAX_COLUMNS]
    result: dict[str, Computed] = {}
    twos = {name for name in names if columns[name].count == 2}
    for name in reversed(names):  # computed columns usually come last
        for source in names:
            if (
                source == name
                or source in result
                or (name not in twos and columns[name].count != columns[source].count)
            ):
                continue
            if words := _recode(columns[name], columns[source], is_later=names.index(name) > names.index(source)):
                result[name] = Computed(source, words.format(source=source))
                break
    return {name: result[name] for name in names if name in result}


def _recode(target: CodedColumn, source: CodedColumn, *, is_later: bool) -> str:
    """Return how the source determines the target, with {source} for its name; empty if it does not."""
    is_same_size = target.count == source.count
    if not is_same_size and (target.count != 2 or source.count < target.count):
        return ""
    if target.count == 2 and target.is_text and source.is_text:
        return ""  # two answers may agree in all records of a sample
    if is_same_size and (target.is_text, not is_later) > (source.is_text, is_later):
        return ""
    both = (target.codes >= 0) & (source.codes >= 0)
    ours, theirs = target.codes[both], source.codes[both]
    if len(ours) - source.count < MIN_REPEATS or 2 * len(ours) < (target.codes >= 0).sum():
        return ""
    # Each value of the source must always come with the same value of the target.
    value = np.full(source.count, -1)
    value[theirs] = ours
    if (value[theirs] != ours).any():
        return ""
    of_source = value[value >= 0]
    size = np.bincount(of_source, minlength=target.count)
    if is_same_size:
        return "another code of the categories of {source}" if (size == 1).all() else ""
    if np.bincount(ours, minlength=2).min() < MIN_RECORDS_OF_INDICATOR:
        return ""
    if size.min() == 1:
        return f"an indicator of one of the {len(of_source)} categories of {{source}}"
    is_split = source.is_ordered and int((np.diff(of_source) != 0).sum()) == 1
    return "an indicator that splits the values of {source}" if is_split else ""


def find_powers(columns: Mapping[str, Array]) -> dict[str, Computed]:
    """Return the numeric columns that are squares or cubes of others, within rounding.

    >>> age = np.arange(20.0, 60.0)
    >>> find_powers({"age": age, "age2": age**2 / 100})["age2"].words
    'age**2 * 0.01'
    """
    names = [name for name, values in columns.items() if len(np.unique(values[np.isfinite(values)][:500])) > 2]
    names = names[:MAX_NUMBERS]
    result: dict[str, Computed] = {}
    for name in names:
        for source in names:
            if source == name or source in result:
                continue
            if words := _power(columns[name], columns[source]):
                result[name] = Computed(source, words.format(source=source))
                break
    return result


def _power(target: Array, source: Array) -> str:
    # One record rules out most pairs of columns.
    both = (
        np.isfinite(target[:TRIAL_RECORDS]) & np.isfinite(source[:TRIAL_RECORDS]) & (np.abs(source[:TRIAL_RECORDS]) > 1)
    )
    if both.any():
        y, x = float(target[both.argmax()]), float(source[both.argmax()])
        if not any(abs(y - scale * x**power) <= 0.01 + 1e-5 * abs(y) for power in POWERS for scale in POWER_SCALES):
            return ""
    known = np.flatnonzero(np.isfinite(target) & np.isfinite(source) & (np.abs(source) > 1))
    if len(known) < MIN_REPEATS:
        return ""
    trial = known[:TRIAL_RECORDS]
    for power in POWERS:
        for scale in POWER_SCALES:
            if not _is_equal(target[trial], scale * source[trial] ** power):
                continue
            if _is_equal(target[known], scale * source[known] ** power) and len(np.unique(source[known])) > 2:
                return f"{{source}}**{power}" + (f" * {scale:g}" if scale != 1 else "")
    return ""


def _is_equal(values: Array, others: Array) -> bool:
    """Return whether numbers agree up to half a unit of the last of at most two decimals, and 1e-6 of themselves."""
    return bool((np.abs(values - others) <= 0.0051 + 1e-6 * np.abs(others)).all())


def find_indicator_sets(columns: Mapping[str, Array]) -> Iterator[Sequence[str]]:
    """Yield sets of at least three columns in a row with 0 and 1 only, of which exactly one is 1 in each complete record.

    >>> region = np.tile([0, 1, 2], 40)
    >>> [*find_indicator_sets({f"r{k}": (region == k).astype(float) for k in range(3)})]
    [['r0', 'r1', 'r2']]
    """
    names, start = list(columns), 0
    while start < len(names):
        end = _end_of_set(columns, names, start)
        if end - start >= MIN_SET_SIZE:
            yield names[start:end]
        start = max(end, start + 1)


def _end_of_set(columns: Mapping[str, Array], names: Sequence[str], start: int) -> int:
    """Return the end of the set that begins at `start`; `start` if there is none."""
    total = np.zeros(len(columns[names[start]]))
    for end in range(start, len(names)):
        values = columns[names[end]]
        known = values[np.isfinite(values)]
        if not np.isin(known, (0.0, 1.0)).all() or not len(known):
            return start
        total = total + values
        complete = total[np.isfinite(total)]
        if not len(complete) or complete.max() > 1:
            return start
        if complete.min() == 1 and len(complete) >= MIN_REPEATS:
            return end + 1
    return start
