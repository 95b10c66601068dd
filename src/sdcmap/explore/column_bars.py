"""Summarize the distribution of a column as a few bars. Bars name values, so they must not be published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sdcmap.core import Array, Column, Microdata, SdcmapError, Stream
from sdcmap.core.value import decode
from sdcmap.data.amounts import amounts, has_numbers
from sdcmap.data.hierarchy import number_text
from sdcmap.kernels.masking.breaks import equal_width, interval_labels, interval_of, round_breaks
from sdcmap.methods import Recode

MAX_BARS = 12  # for categories and intervals
MAX_ORDERED_BARS = 24  # for categories with an order
INTERVAL_QUANTILES = (0.01, 0.99)  # intervals lie between these; outliers fall into the open ones at both ends
MODE_SHARE = 0.5  # a number that more than this share of the records has gets a bar of its own


@dataclass(frozen=True)
class Bar:
    """A label and its number of records."""

    label: str
    count: int


@dataclass(frozen=True)
class Bars:
    """All records of a column: in a bar, among `others` (of `categories` rarer categories), or missing."""

    bars: tuple[Bar, ...]
    missing: int
    others: int = 0
    categories: int = 0


def summarize_column(data: Microdata, name: str) -> Bars:
    """Return the bars of a column: intervals of numbers, or categories, of which the rarer ones may be merged.

    >>> import sdcmap as sm
    >>> summarize_column(sm.read({"sex": ["f", "m", "f", None]}), "sex")
    Bars(bars=(Bar(label='f', count=2), Bar(label='m', count=1)), missing=1, others=0, categories=0)
    """
    column = data.column(name)
    if column.levels is None:
        return _summarize_numbers(column.values)
    bars = count_values(column)
    if len(bars) > MAX_ORDERED_BARS and has_numbers(column):
        return _summarize_numbers(amounts(data, name))
    missing = len(column.values) - sum(bar.count for bar in bars)
    if column.levels.dtype.is_temporal() and len(bars) > MAX_ORDERED_BARS:
        bars = [*sum_bars((date.label[:4], date.count) for date in bars)]  # many dates are summed by year
    is_ordered = data.schema[name].kind == "ordinal" and len(bars) <= MAX_ORDERED_BARS
    shown = tuple(bars) if is_ordered else _most_frequent(bars)
    others = sum(bar.count for bar in bars) - sum(bar.count for bar in shown)
    return Bars(shown, missing, others, len(bars) - len(shown))


def count_values(column: Column) -> list[Bar]:
    """Return a bar for each category or number that occurs, in order."""
    if column.levels is None:
        return _number_bars(*np.unique(column.values[~np.isnan(column.values)], return_counts=True))
    counts = np.bincount(column.values, minlength=len(column.levels))
    pairs = zip(column.levels.to_list(), counts, strict=False)
    return [Bar(str(level), int(count)) for level, count in pairs if level is not None and count]


def sum_bars(pairs: Iterable[tuple[str, int]]) -> tuple[Bar, ...]:
    """Return one bar per label, in order of first occurrence, with the sum of its records."""
    records: Counter[str] = Counter()
    for label, count in pairs:
        records[label] += count
    return tuple(Bar(label, count) for label, count in records.items())


def _most_frequent(bars: Sequence[Bar]) -> tuple[Bar, ...]:
    """Return all bars if they are few, else the largest in their order, leaving room for one bar of the others."""
    largest = bars if len(bars) <= MAX_BARS else sorted(bars, key=lambda bar: -bar.count)[: MAX_BARS - 1]
    return tuple(bar for bar in bars if bar in largest)


def _number_bars(values: Array, counts: Array) -> list[Bar]:
    return [Bar(number_text(value), int(count)) for value, count in zip(values, counts, strict=True)]


def _summarize_numbers(values: Array) -> Bars:
    known = values[~np.isnan(values)]
    missing = len(values) - len(known)
    distinct, counts = np.unique(known, return_counts=True)
    if len(distinct) <= MAX_BARS:
        return Bars(tuple(_number_bars(distinct, counts)), missing)
    # A dominant number, often 0, would hide the distribution of the others: it gets its own bar.
    mode = int(counts.argmax())
    has_mode_bar = counts[mode] > MODE_SHARE * len(known)
    rest = known[known != distinct[mode]] if has_mode_bar else known
    low, high = np.quantile(rest, INTERVAL_QUANTILES)
    # Equal widths between the quantiles, with short break points for labels.
    breaks = round_breaks(equal_width(rest[(rest >= low) & (rest <= high)], MAX_BARS - 2))
    tally = np.bincount(interval_of(rest, breaks, "right"), minlength=len(breaks) + 1)
    intervals = [Bar(label, int(n)) for label, n in zip(interval_labels(breaks.tolist(), "right"), tally, strict=True)]
    mode_bar = [Bar(f"just {number_text(distinct[mode])}", int(counts[mode]))] if has_mode_bar else []
    return Bars((*mode_bar, *intervals), missing)


# ---- preview of a recode ------------------------------------------------------------------------------------------
MAX_CATEGORIES_LISTED = 500  # of a column, before and after; more cannot be reviewed on a screen
UNUSED_STREAM = Stream.of_seed(0, "recoding")  # `apply` needs a stream, but a recode draws no random numbers


@dataclass(frozen=True)
class RecodePreview:
    """One column before and after a recode. It names values, so it must not be published.

    categories, after : the categories before and after the recode, with their records; empty if there are more than
        MAX_CATEGORIES_LISTED.
    spread : the bars of the column before the recode.
    before_count, after_count : the numbers of categories.
    problem : why the recode is not possible; then `after` is empty.
    """

    name: str
    kind: str
    categories: tuple[Bar, ...]
    spread: Bars
    before_count: int
    after: tuple[Bar, ...]
    after_count: int
    missing: int
    smallest: int  # records of the rarest category after the recode
    problem: str = ""


def preview_recode(data: Microdata, spec: Mapping[str, Any]) -> list[RecodePreview]:
    """Return each column of a recode before and after it; for an incomplete recode, the problem instead of the result."""
    on = spec.get("on", ())
    names = [on] if isinstance(on, str) else [name for name in on if isinstance(name, str)]
    return [_preview_column(data, {**spec, "on": [name]}, name) for name in dict.fromkeys(names) if name in data.names]


def _preview_column(data: Microdata, spec: Mapping[str, Any], name: str) -> RecodePreview:
    before, after, problem = count_values(data.column(name)), list[Bar](), ""
    try:
        after = count_values(decode(spec, Recode).apply(data.only([name]), UNUSED_STREAM).column(name))
    except SdcmapError as error:
        problem = str(error)
    listed = [tuple(bars) if len(bars) <= MAX_CATEGORIES_LISTED else () for bars in (before, after)]
    return RecodePreview(
        name=name,
        kind=data.schema[name].kind,
        categories=listed[0],
        spread=summarize_column(data, name),
        before_count=len(before),
        after=listed[1],
        after_count=len(after),
        missing=int(data.missing(name).sum()),
        smallest=min((bar.count for bar in after), default=0),
        problem=problem,
    )
