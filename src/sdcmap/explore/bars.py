"""How the values of a column are spread, as a few bars; they name values, so they are for the room only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sdcmap.core import Array, Column, Microdata, SdcmapError, Stream
from sdcmap.core.value import decode
from sdcmap.data.amounts import amounts, holds_numbers
from sdcmap.data.hierarchy import number_text
from sdcmap.kernels.masking.breaks import equal_width, interval_labels, interval_of, round_breaks
from sdcmap.methods import Recode

MOST = 12  # bars of categories and intervals
MOST_ORDERED = 24  # bars of categories that have an order
MIDDLE = (0.01, 0.99)  # quantiles that the intervals lie between; what is beyond them is in the open ones
MODE = 0.5  # share of the records from which on one number has its own bar


@dataclass(frozen=True)
class Bar:
    """What a bar stands for, and how many records it has."""

    label: str
    count: int


@dataclass(frozen=True)
class Bars:
    """Every record of a column: in a bar, among `others` (of `categories` rarer categories), or missing."""

    bars: tuple[Bar, ...]
    missing: int
    others: int = 0
    categories: int = 0


def bars_of(data: Microdata, name: str) -> Bars:
    """The bars of one column: numbers in intervals, categories by name, the rarer ones of many together.

    >>> import sdcmap as sm
    >>> bars_of(sm.read({"sex": ["f", "m", "f", None]}), "sex")
    Bars(bars=(Bar(label='f', count=2), Bar(label='m', count=1)), missing=1, others=0, categories=0)
    """
    column = data.column(name)
    if column.levels is None:
        return _of_numbers(column.values)
    met = column_counts(column)
    if len(met) > MOST_ORDERED and holds_numbers(column):
        return _of_numbers(amounts(data, name))
    missing = len(column.values) - sum(bar.count for bar in met)
    if column.levels.dtype.is_temporal() and len(met) > MOST_ORDERED:
        met = [*sum_bars((date.label[:4], date.count) for date in met)]
    ordered = data.schema[name].kind == "ordinal" and len(met) <= MOST_ORDERED
    kept = tuple(met) if ordered else _commonest(met)
    others = sum(bar.count for bar in met) - sum(bar.count for bar in kept)
    return Bars(kept, missing, others, len(met) - len(kept))


def column_counts(column: Column) -> list[Bar]:
    """The categories that occur, in their order, each with its records."""
    if column.levels is None:
        return _number_bars(*np.unique(column.values[~np.isnan(column.values)], return_counts=True))
    counts = np.bincount(column.values, minlength=len(column.levels))
    met = zip(column.levels.to_list(), counts, strict=False)
    return [Bar(str(level), int(count)) for level, count in met if level is not None and count]


def sum_bars(pairs: Iterable[tuple[str, int]]) -> tuple[Bar, ...]:
    """A bar for each label, in the order in which they come, with all its records."""
    records: Counter[str] = Counter()
    for label, count in pairs:
        records[label] += count
    return tuple(Bar(label, count) for label, count in records.items())


def _commonest(met: Sequence[Bar]) -> tuple[Bar, ...]:
    """All where they are few, else the commonest, in their order: one bar is left for the others."""
    kept = met if len(met) <= MOST else sorted(met, key=lambda bar: -bar.count)[: MOST - 1]
    return tuple(bar for bar in met if bar in kept)


def _number_bars(values: Array, counts: Array) -> list[Bar]:
    return [Bar(number_text(value), int(count)) for value, count in zip(values, counts, strict=True)]


def _of_numbers(values: Array) -> Bars:
    known = values[~np.isnan(values)]
    missing = len(values) - len(known)
    distinct, counts = np.unique(known, return_counts=True)
    if len(distinct) <= MOST:
        return Bars(tuple(_number_bars(distinct, counts)), missing)
    most = int(counts.argmax())
    own = counts[most] > MODE * len(known)
    rest = known[known != distinct[most]] if own else known
    low, high = np.quantile(rest, MIDDLE)
    breaks = round_breaks(equal_width(rest[(rest >= low) & (rest <= high)], MOST - 2))
    tally = np.bincount(interval_of(rest, breaks, "right"), minlength=len(breaks) + 1)
    spread = [Bar(label, int(n)) for label, n in zip(interval_labels(breaks.tolist(), "right"), tally, strict=True)]
    mode = [Bar(f"just {number_text(distinct[most])}", int(counts[most]))] if own else []
    return Bars((*mode, *spread), missing)


# What a recode makes of a column, category by category: for the room only, since it names values.


MOST_LISTED = 500  # categories that are listed
DRAWS = Stream.of_seed(0, "recoding")  # a recode draws nothing


@dataclass(frozen=True)
class Recoded:
    """One column before and after a recode.

    categories, after : every category that occurs with its records, at most MOST (else none are listed); spread : the bars
    of the column as it is; before_count, after_count : how many categories there are; problem : why there is no after.
    """

    name: str
    kind: str
    categories: tuple[Bar, ...]
    spread: Bars
    before_count: int
    after: tuple[Bar, ...]
    after_count: int
    missing: int
    smallest: int  # records of the rarest category after it
    problem: str = ""


def recoded(data: Microdata, spec: Mapping[str, Any]) -> list[Recoded]:
    """Each column that a recode names, before and after; where the recode is not whole yet, its problem and no after."""
    given = spec.get("on", ())
    names = [given] if isinstance(given, str) else [name for name in given if isinstance(name, str)]
    return [_recoded(data, {**spec, "on": [name]}, name) for name in dict.fromkeys(names) if name in data.names]


def _recoded(data: Microdata, spec: Mapping[str, Any], name: str) -> Recoded:
    before, after, problem = column_counts(data.column(name)), list[Bar](), ""
    try:
        after = column_counts(decode(spec, Recode).apply(data.only([name]), DRAWS).column(name))
    except SdcmapError as error:
        problem = str(error)
    listed = [tuple(bars) if len(bars) <= MOST_LISTED else () for bars in (before, after)]
    return Recoded(
        name, data.schema[name].kind, listed[0], bars_of(data, name), len(before), listed[1], len(after),
        int(data.missing(name).sum()), min((bar.count for bar in after), default=0), problem,
    )  # fmt: skip
