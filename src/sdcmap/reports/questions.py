"""What users will ask the file, answered by the original and by the release: tables, means, regressions, the subgroups for
which answers differ most, and what each score costs in records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Choice, Measure, Microdata, SchemaError, Undefined
from sdcmap.core.audience import MIN_SHOWN_RECORDS, format_significant
from sdcmap.data.schema import NEVER_RELEASED
from sdcmap.data.tables import table
from sdcmap.study.scores import Scores
from sdcmap.study.subsamples import as_subsample
from sdcmap.utility.moment_change import MomentChange
from sdcmap.utility.worst_subgroup import Subgroup, WorstSubgroup

MOST_LEVELS = 30  # a column with more categories makes no groups
MOST_KEYS = 8  # columns of categories that make groups and tables
MOST_NUMBERS = 8
LEAST = 3 * MIN_SHOWN_RECORDS  # records a subgroup must have before it is named
WORST = 3
FAR = 0.2  # a cell this far off, relative to its count, is wrong for a reader of tables


class Answer(NamedTuple):
    """A question, and what the original and the release answer."""

    question: str
    before: str
    after: str


class SubgroupAnswer(NamedTuple):
    """A mean or a share within a subgroup: its records, both answers (NaN: nobody is left), and how far off the second is,
    in standard deviations."""

    what: str
    where: str
    records: int
    before: float
    after: float
    off: float


def answers(original: Microdata, masked: Microdata) -> list[Answer]:
    """Tables of two columns, means, and a regression of each number on the others and the groups."""
    groups, numbers = groups_of(original, masked), numbers_of(original, masked)
    means, fits = _means(original, masked, numbers), _fits(original, masked, groups, numbers)
    return [*_tables(original, masked, groups), *means, *fits]


def _tables(original: Microdata, masked: Microdata, groups: Sequence[str]) -> Iterator[Answer]:
    pairs: list[tuple[str, ...]] = [*combinations(groups, 2)] or [(name,) for name in groups]
    right = held = 0
    for names in pairs:
        counted = table(original, masked, names)
        asked = counted.before >= MIN_SHOWN_RECORDS
        held += int(asked.sum())
        right += int((np.abs(counted.after - counted.before)[asked] <= FAR * counted.before[asked]).sum())
    if held:
        what = "tables of two columns" if len(pairs[0]) == 2 else "tables of one column"
        question = (
            f"In {len(pairs)} {what}, how many cells of {MIN_SHOWN_RECORDS} records or more are right within {FAR:.0%}?"
        )
        yield Answer(question, f"{held:,}", f"{right:,} ({format_significant(100 * right / held, 3)} %)")


def _means(original: Microdata, masked: Microdata, numbers: Sequence[str]) -> Iterator[Answer]:
    for name in numbers:
        both = [_finite(data.numbers(name)) for data in (original, masked)]
        if min(map(len, both)) >= MIN_SHOWN_RECORDS:
            before, after = (format_significant(float(values.mean()), 4) for values in both)
            yield Answer(f"What is the mean of {name}?", before, after)


def _fits(original: Microdata, masked: Microdata, groups: Sequence[str], numbers: Sequence[str]) -> Iterator[Answer]:
    """How much of a number's variance the others and the groups explain (R^2 of a linear regression)."""
    levels = [(group, level) for group in groups for level in _levels(original, group)[1:]]
    for name in numbers if groups or len(numbers) > 1 else ():
        others = [other for other in numbers if other != name]
        before, after = (_explained(data, name, others, levels) for data in (original, masked))
        if before is not None and after is not None:
            question = f"How much of {name} do the other columns explain (R² of a regression)?"
            yield Answer(question, format_significant(before, 3), format_significant(after, 3))


def _explained(data: Microdata, name: str, others: Sequence[str], levels: Sequence[tuple[str, str]]) -> float | None:
    y = data.numbers(name)
    terms = [*map(data.numbers, others), *(_indicator(data, group, level) for group, level in levels)]
    x = np.column_stack([np.ones(len(y)), *terms])
    known = np.isfinite(y) & np.isfinite(x).all(axis=1)
    x, y = x[known], y[known]
    if len(y) < 2 * x.shape[1] or y.std() == 0:
        return None
    scale = np.maximum(np.abs(x).max(axis=0), 1e-300)  # columns of one size: amounts beside indicators
    residual = y - x / scale @ np.linalg.lstsq(x / scale, y, rcond=None)[0]
    return float(1 - residual.var() / y.var())


def worst_subgroups(original: Microdata, masked: Microdata, most: int = WORST) -> list[SubgroupAnswer]:
    """The means of numbers and shares of categories, by the categories of every grouping column of 30 records or more,
    whose answer moved most, in standard deviations of the whole column."""
    groups, numbers = groups_of(original, masked), numbers_of(original, masked)
    rows = [row for group in groups for row in _within(original, masked, group, groups, numbers)]
    return sorted(rows, key=lambda row: -abs(row.off))[:most]


def _within(
    original: Microdata, masked: Microdata, group: str, groups: Sequence[str], numbers: Sequence[str]
) -> Iterator[SubgroupAnswer]:
    files = original, masked
    asked = [(f"mean of {name}", [data.numbers(name) for data in files]) for name in numbers]
    levels = [(other, level) for other in groups if other != group for level in _levels(original, other)]
    asked += [(f"share of {other} = {level}", [_indicator(d, other, level) for d in files]) for other, level in levels]
    for level in _levels(original, group):
        here, there = (_indicator(data, group, level) > 0 for data in files)
        for what, (before, after) in asked if here.sum() >= LEAST else ():
            own, moved, spread = _finite(before[here]), _finite(after[there]), np.nanstd(before)
            if len(own) and spread > 0:
                a, b = float(own.mean()), float(moved.mean()) if len(moved) else np.nan
                off = float((b - a) / spread) if len(moved) else np.inf
                yield SubgroupAnswer(what, f"{group} = {level}", int(here.sum()), a, b, off)


def _finite(values: Array) -> Array:
    return values[np.isfinite(values)]


def _levels(data: Microdata, name: str) -> list[str]:
    levels = data.column(name).levels
    return [] if levels is None else [str(level) for level in levels.to_list() if level is not None]


def _indicator(data: Microdata, name: str, level: str) -> Array:
    """1 for records of this category, by its words: a masked file may have other codes."""
    column = data.column(name)
    assert column.levels is not None
    codes = [code for code, value in enumerate(column.levels.to_list()) if value is not None and str(value) == level]
    return np.asarray(np.isin(column.values, codes), dtype=float)


def _released(original: Microdata, masked: Microdata, numbers: bool, first: str) -> list[str]:
    """Columns that are numbers in both files, or categories in both, those of the role `first` at the front."""
    apart = (*NEVER_RELEASED, "weight", "household", "stratum")
    names = [v.name for v in original.schema.variables if v.role not in apart and v.name in masked.names]
    like = [n for n in names if all((data.column(n).levels is None) == numbers for data in (original, masked))]
    return sorted(like, key=lambda name: original.schema[name].role != first)


def groups_of(original: Microdata, masked: Microdata) -> list[str]:
    """Columns of few categories in both files, keys first."""
    names = _released(original, masked, False, "key")
    return [name for name in names if 1 < original.level_count(name) <= MOST_LEVELS][:MOST_KEYS]


def numbers_of(original: Microdata, masked: Microdata) -> list[str]:
    """Columns that are numbers in both files, the sensitive ones first."""
    return _released(original, masked, True, "sensitive")[:MOST_NUMBERS]


def subgroup_means(original: Microdata, masked: Microdata, measures: Iterable[Measure] = ()) -> list[SubgroupAnswer]:
    """The three worst subgroups (30 records or more) of each number, by `WorstSubgroup`: over the variables that its
    measures in the plan name, or over each column of few categories. None for synthetic files: nobody's record is known
    there."""
    if not masked.paired:
        return []
    named = list(dict.fromkeys(measure.by for measure in measures if isinstance(measure, WorstSubgroup)))
    divisions = named or [(name,) for name in groups_of(original, masked)]
    return [row for number in numbers_of(original, masked) for row in _worst(original, masked, number, divisions)]


def _worst(
    original: Microdata, masked: Microdata, number: str, divisions: list[tuple[str, ...]]
) -> Iterator[SubgroupAnswer]:
    found: list[tuple[tuple[str, ...], Subgroup]] = []
    for by in divisions:
        measure = WorstSubgroup(MomentChange(on=(number,)), by=by, fewest=LEAST)
        with suppress(SchemaError, Undefined):  # an order that has no mean
            found += [(by, group) for group in measure.subgroups(original, masked, np.random.default_rng(0))]
    for by, group in sorted(found, key=lambda pair: -pair[1].loss)[:WORST]:
        if group.loss > 0:
            pairs = (original, group.rows), (masked, group.released)
            before, after = (float(np.nanmean(data.numbers(number)[rows])) for data, rows in pairs)
            first = original.take(group.rows[:1])
            where = " and ".join(f"{n} = {'missing' if first.missing(n)[0] else first[n][0]}" for n in by)
            yield SubgroupAnswer(f"mean of {number}", where, len(group.rows), before, after, group.loss)


DRAWS = 8  # subsamples of each share
SCORES = 4 * DRAWS  # of the whole file, about, that a reading takes
MOST_SECONDS = 60.0  # for one measure: a report does not keep people waiting


def in_records(data: Microdata, scores: Scores, choice: Choice, seed: int) -> list[tuple[str, str]]:
    """Each utility measure in words, and its score read as a share of the records thrown away, or why it is not."""
    measures = [measure for measure in scores.values.values() if measure.axis == "utility"]
    prices = {m.text: SCORES * (m.seconds(data) or 0.0) for m in measures}  # in seconds; 0: the measure states none
    cheap = [measure for measure in measures if prices[measure.text] <= MOST_SECONDS]
    readings = as_subsample(data, scores, choice, cheap, draws=DRAWS, seed=seed)
    late = "not read here: it would take about {:.0f} minutes (`as_subsample`)"
    told = {text: late.format(seconds / 60) for text, seconds in prices.items()}
    told |= {reading.measure: reading.words for reading in readings}
    return [(scores.title_of(measure.text), told[measure.text]) for measure in measures]
