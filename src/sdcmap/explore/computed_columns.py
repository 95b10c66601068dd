"""Find columns that repeat what others say: indicators, other codes of the same categories, powers, logarithms, linear
functions and interactions; and sets of indicators of which exactly one is 1. Formulas between amounts are found in
`data.column_formulas`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sdcmap.core import Array
from sdcmap.data.column_formulas import rounding

MAX_CATEGORIES = 2000  # columns with more values are not compared as categories
MIN_REPEATS = 30  # records whose value another record has; with fewer, two columns may agree by chance
MIN_RECORDS_OF_INDICATOR = 10  # with each of its two values; a rarer one may be a split of another column by chance
MAX_COLUMNS = 200  # that are compared with each other; the work grows with the square
MIN_SET_SIZE = 3  # indicators in a set of which one is 1; two of them are each other's reverse
POWER_SCALES = (1.0, 0.1, 0.01, 0.001, 0.0001)  # such as age**2 / 100


def _power(power: int, scale: float, x: Array) -> Array:
    return np.asarray(scale * x**power)


FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    **{
        f"{{source}}**{p}" + (f" * {c:g}" if c != 1 else ""): partial(_power, p, c)
        for p in (2, 3)
        for c in POWER_SCALES
    },
    "log({source})": np.log,
    "log({source} + 1)": np.log1p,
    "log10({source})": np.log10,
}
RELATIVE_SLACK = 1e-6  # of numbers that are equal, for what is stored in single precision
LINE_SLACK = 1.3  # half units of the last decimal, because the line is fitted to rounded values
MIN_STEPS_OF_LINE = 20  # half units of the last decimal; fewer values lie on a line by chance
MAX_NUMBERS = 60  # numeric columns that are tried as functions of each other
MAX_GROUPS = 50  # categories that may tell where a column is 0
MAX_INDICATED_NUMBERS = 20  # of a column of which an indicator is computed; an amount is 0 for a group, not the reverse
TRIAL_RECORDS = 40  # a function is tried on these first


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
    """What a column is computed from, and how, in words without data values.

    has_constant : it is a linear function with a constant, such as a standardized column.
    """

    source: str
    words: str
    has_constant: bool = False


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
        if source.is_ordered and source.count > MAX_INDICATED_NUMBERS:
            return ""
        return f"an indicator of one of the {len(of_source)} categories of {{source}}"
    is_split = source.is_ordered and int((np.diff(of_source) != 0).sum()) == 1
    return "an indicator that splits the values of {source}" if is_split else ""


def find_functions(columns: Mapping[str, Array]) -> dict[str, Computed]:
    """Return the numeric columns that are a power, a logarithm or a linear function of another one, within rounding.

    Of two columns that are linear functions of each other, the one with more decimals is computed, else the later one.

    >>> age = np.arange(20.0, 60.0)
    >>> found = find_functions({"age": age, "age2": age**2 / 100, "z": (age - age.mean()) / age.std()})
    >>> {name: computed.words for name, computed in found.items()}
    {'age2': 'age**2 * 0.01', 'z': 'a linear function of age'}
    """
    names = [name for name, values in columns.items() if len(np.unique(values[np.isfinite(values)][:500])) > 2]
    names = names[:MAX_NUMBERS]
    unit = {name: rounding(columns[name]) for name in names}
    result: dict[str, Computed] = {}
    for name in reversed(names):  # computed columns usually come last
        for source in names:
            if source == name or source in result:
                continue
            if words := _function(columns[name], columns[source], unit[name]):
                result[name] = Computed(source, words.format(source=source))
                break
            is_source = (unit[source], -names.index(source)) > (unit[name], -names.index(name))
            if is_source and _is_line(columns[name], columns[source], unit[name], has_constant=True):
                is_proportional = _is_line(columns[name], columns[source], unit[name], has_constant=False)
                result[name] = Computed(source, f"a linear function of {source}", has_constant=not is_proportional)
                break
    return {name: result[name] for name in names if name in result}


def _function(target: Array, source: Array, unit: float) -> str:
    """Return the power or logarithm of the source that the target is, with {source} for its name; empty if none."""
    some, every = (rows[np.abs(source[rows]) > 1] for rows in _known_rows(target, source))  # 1 is its own power
    with np.errstate(all="ignore"):
        for words, function in FUNCTIONS.items():
            if _is_equal(target[some], function(source[some]), unit):
                is_equal = len(every) >= MIN_REPEATS and _is_equal(target[every], function(source[every]), unit)
                if is_equal and len(np.unique(source[every])) > 2:
                    return words
    return ""


def _is_line(target: Array, source: Array, unit: float, *, has_constant: bool) -> bool:
    """Return whether a column is a linear function of the source within rounding, as a standardized column is."""
    for rows in _known_rows(target, source):
        y, x = target[rows], source[rows]
        if len(rows) < 3 or not np.ptp(x) or np.ptp(y) < MIN_STEPS_OF_LINE * unit:
            return False
        slack = LINE_SLACK * unit + RELATIVE_SLACK * np.ptp(y)
        x, y = (x - x.mean(), y - y.mean()) if has_constant else (x, y)
        x = x / np.abs(x).max()  # of any size: squares of numbers such as 1e-200 or 1e200 are out of range
        if np.abs(y - float(x @ y) / float(x @ x) * x).max() > slack:
            return False
    return len(rows) >= MIN_REPEATS


def _known_rows(target: Array, source: Array) -> tuple[Array, Array]:
    """Return some rows, spread over the file, and all rows in which both columns are known."""
    known = np.isfinite(target) & np.isfinite(source)
    spread = np.unique(np.linspace(0, len(target) - 1, TRIAL_RECORDS).astype(np.int64))
    return spread[known[spread]], np.flatnonzero(known)


def _is_equal(values: Array, others: Array, unit: float) -> bool:
    """Return whether numbers agree within half a unit of the last decimal, of which two count, and 1e-6 of themselves."""
    slack = 1.02 * min(unit, 0.005) + RELATIVE_SLACK * np.abs(others)
    return bool((np.abs(values - others) <= slack).all())


def find_interactions(numbers: Mapping[str, Array], categories: Mapping[str, CodedColumn]) -> dict[str, Computed]:
    """Return the numeric columns that equal another one for some categories of a third column, and are 0 for all others.

    >>> age, woman = np.arange(20.0, 80.0), np.tile([0, 1], 30)
    >>> find_interactions({"age": age, "both": age * woman}, {"sex": CodedColumn(woman, 2, False, True)})["both"].words
    'age for some categories of sex, and 0 for the others'
    """
    names = [name for name, values in numbers.items() if len(np.unique(values[np.isfinite(values)][:500])) > 2]
    groups = {name: column for name, column in categories.items() if 1 < column.count <= MAX_GROUPS}
    result: dict[str, Computed] = {}
    for name in (name for name in names[:MAX_NUMBERS] if (numbers[name] == 0).any()):
        for source in (source for source in names[:MAX_NUMBERS] if source not in (name, *result)):
            if group := _interaction(numbers[name], numbers[source], groups, (name, source)):
                result[name] = Computed(source, f"{source} for some categories of {group}, and 0 for the others")
                break
    return result


def _interaction(target: Array, source: Array, groups: Mapping[str, CodedColumn], but: tuple[str, str]) -> str:
    """Return the column whose categories tell where the target equals the source, and where it is 0; empty if none."""
    some, every = _known_rows(target, source)
    if ((target[some] != source[some]) & (target[some] != 0)).any():
        return ""
    rows = every[source[every] != 0]
    is_source = target[rows] == source[rows]
    is_other = (target[every] != source[every]) & (target[every] != 0)
    if is_other.any() or min(is_source.sum(), (~is_source).sum()) < MIN_REPEATS:
        return ""
    for name, group in groups.items():
        if name in but or (group.codes[rows] < 0).any():
            continue
        of_group = np.bincount(group.codes[rows], weights=is_source, minlength=group.count)
        size = np.bincount(group.codes[rows], minlength=group.count)
        if ((of_group == 0) | (of_group == size)).all():
            return name
    return ""


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
