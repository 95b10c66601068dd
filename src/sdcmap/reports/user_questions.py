"""Typical questions of users, answered with the original and with the release.

The questions are tables, means and regressions. The module also finds the subgroups whose answers differ most, and
expresses each utility score as a loss of records.
"""

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

MAX_LEVELS = 30  # categories of a column that defines groups
MAX_GROUP_COLUMNS = 8  # that define groups and tables
MAX_NUMERIC_COLUMNS = 8  # whose means and regressions are compared
MIN_SUBGROUP_RECORDS = 3 * MIN_SHOWN_RECORDS  # of a subgroup that is named
SUBGROUPS_SHOWN = 3
MAX_CELL_ERROR = 0.2  # relative error up to which a cell counts as correct


class Answer(NamedTuple):
    """A question, with the answers of the original and of the release."""

    question: str
    before: str
    after: str


class SubgroupAnswer(NamedTuple):
    """A mean or a share within a subgroup: its records, both answers, and the error of the second in standard deviations.

    after : NaN if no record of the subgroup is left in the release.
    """

    what: str
    where: str
    records: int
    before: float
    after: float
    off: float


def answer_questions(original: Microdata, masked: Microdata) -> list[Answer]:
    """Return the answers for two-way tables, means, and a regression of each number on the other columns."""
    groups, numbers = groups_of(original, masked), numbers_of(original, masked)
    means, fits = _answer_means(original, masked, numbers), _answer_regressions(original, masked, groups, numbers)
    return [*_answer_tables(original, masked, groups), *means, *fits]


def _answer_tables(original: Microdata, masked: Microdata, groups: Sequence[str]) -> Iterator[Answer]:
    pairs: list[tuple[str, ...]] = [*combinations(groups, 2)] or [(name,) for name in groups]
    correct = cells = 0
    for names in pairs:
        counts = table(original, masked, names)
        # Users should not interpret smaller cells, so they are not counted.
        is_large = counts.before >= MIN_SHOWN_RECORDS
        cells += int(is_large.sum())
        error, tolerance = np.abs(counts.after - counts.before), MAX_CELL_ERROR * counts.before
        correct += int((error <= tolerance)[is_large].sum())
    if cells:
        what = "two-way tables" if len(pairs[0]) == 2 else "one-way tables"
        large = f"cells with {MIN_SHOWN_RECORDS} records or more"
        question = f"In {len(pairs)} {what}, how many {large} are correct within {100 * MAX_CELL_ERROR:.0f} %?"
        yield Answer(question, f"{cells:,}", f"{correct:,} ({format_significant(100 * correct / cells, 3)} %)")


def _answer_means(original: Microdata, masked: Microdata, numbers: Sequence[str]) -> Iterator[Answer]:
    for name in numbers:
        both = [_finite(data.numbers(name)) for data in (original, masked)]
        if min(map(len, both)) >= MIN_SHOWN_RECORDS:
            before, after = (format_significant(float(values.mean()), 4) for values in both)
            yield Answer(f"What is the mean of {name}?", before, after)


def _answer_regressions(
    original: Microdata, masked: Microdata, groups: Sequence[str], numbers: Sequence[str]
) -> Iterator[Answer]:
    """Yield R², the share of a number's variance that the other numbers and the groups explain."""
    # The first category of each group is the reference, as usual in regressions.
    levels = [(group, level) for group in groups for level in _levels(original, group)[1:]]
    for name in numbers if groups or len(numbers) > 1 else ():
        others = [other for other in numbers if other != name]
        before, after = (_r_squared(data, name, others, levels) for data in (original, masked))
        if before is not None and after is not None:
            question = f"How much of the variance of {name} do the other columns explain (R² of a regression)?"
            yield Answer(question, format_significant(before, 3), format_significant(after, 3))


def _r_squared(data: Microdata, name: str, others: Sequence[str], levels: Sequence[tuple[str, str]]) -> float | None:
    y = data.numbers(name)
    terms = [*map(data.numbers, others), *(_indicator(data, group, level) for group, level in levels)]
    # The same categories are used for both files, so that both models have the same terms.
    x = np.column_stack([np.ones(len(y)), *terms])
    known = np.isfinite(y) & np.isfinite(x).all(axis=1)
    x, y = x[known], y[known]
    if len(y) < 2 * x.shape[1] or y.std() == 0:
        return None
    scale = np.maximum(np.abs(x).max(axis=0), 1e-300)  # least squares needs columns of similar size
    residual = y - x / scale @ np.linalg.lstsq(x / scale, y, rcond=None)[0]
    return float(1 - residual.var() / y.var())


def worst_subgroups(original: Microdata, masked: Microdata, most: int = SUBGROUPS_SHOWN) -> list[SubgroupAnswer]:
    """Return the means and shares within subgroups of 30 records or more that changed most.

    Changes are in standard deviations of the whole column. Subgroups are the categories of each grouping column.
    """
    groups, numbers = groups_of(original, masked), numbers_of(original, masked)
    rows = [row for group in groups for row in _compare_subgroups(original, masked, group, groups, numbers)]
    return sorted(rows, key=lambda row: -abs(row.off))[:most]


def _compare_subgroups(
    original: Microdata, masked: Microdata, group: str, groups: Sequence[str], numbers: Sequence[str]
) -> Iterator[SubgroupAnswer]:
    files = original, masked
    questions = [(f"mean of {name}", [data.numbers(name) for data in files]) for name in numbers]
    levels = [(other, level) for other in groups if other != group for level in _levels(original, other)]
    questions += [
        (f"share of {other} = {level}", [_indicator(d, other, level) for d in files]) for other, level in levels
    ]
    for level in _levels(original, group):
        in_original, in_masked = (_indicator(data, group, level) > 0 for data in files)
        for what, (before, after) in questions if in_original.sum() >= MIN_SUBGROUP_RECORDS else ():
            values, masked_values, spread = _finite(before[in_original]), _finite(after[in_masked]), np.nanstd(before)
            if len(values) and spread > 0:
                a, b = float(values.mean()), float(masked_values.mean()) if len(masked_values) else np.nan
                off = float((b - a) / spread) if len(masked_values) else np.inf
                yield SubgroupAnswer(what, f"{group} = {level}", int(in_original.sum()), a, b, off)


def _finite(values: Array) -> Array:
    return values[np.isfinite(values)]


def _levels(data: Microdata, name: str) -> list[str]:
    levels = data.column(name).levels
    return [] if levels is None else [str(level) for level in levels.to_list() if level is not None]


def _indicator(data: Microdata, name: str, level: str) -> Array:
    """Return 1 for records of this category and 0 for others, matched by label: a masked file may use other codes."""
    column = data.column(name)
    assert column.levels is not None
    codes = [code for code, value in enumerate(column.levels.to_list()) if value is not None and str(value) == level]
    return np.asarray(np.isin(column.values, codes), dtype=float)


def _common_columns(original: Microdata, masked: Microdata, numbers: bool, first: str) -> list[str]:
    """Return columns that are numeric (or categorical) in both files, those with the role `first` at the front."""
    excluded = (*NEVER_RELEASED, "weight", "household", "stratum")
    names = [v.name for v in original.schema.variables if v.role not in excluded and v.name in masked.names]
    columns = [n for n in names if all((data.column(n).levels is None) == numbers for data in (original, masked))]
    return sorted(columns, key=lambda name: original.schema[name].role != first)


def groups_of(original: Microdata, masked: Microdata) -> list[str]:
    """Return categorical columns with few categories in both files, keys first."""
    names = _common_columns(original, masked, False, "key")
    return [name for name in names if 1 < original.level_count(name) <= MAX_LEVELS][:MAX_GROUP_COLUMNS]


def numbers_of(original: Microdata, masked: Microdata) -> list[str]:
    """Return columns that are numeric in both files, sensitive ones first."""
    return _common_columns(original, masked, True, "sensitive")[:MAX_NUMERIC_COLUMNS]


def subgroup_means(original: Microdata, masked: Microdata, measures: Iterable[Measure] = ()) -> list[SubgroupAnswer]:
    """Return the three worst subgroups (30 records or more) of each number, by `WorstSubgroup`.

    Subgroups come from the variables that the plan's WorstSubgroup measures name, or from each grouping column. Synthetic
    files have none, because their rows do not correspond to people.
    """
    if not masked.paired:
        return []
    named = list(dict.fromkeys(measure.by for measure in measures if isinstance(measure, WorstSubgroup)))
    divisions = named or [(name,) for name in groups_of(original, masked)]
    return [
        row
        for number in numbers_of(original, masked)
        for row in _worst_subgroups_of(original, masked, number, divisions)
    ]


def _worst_subgroups_of(
    original: Microdata, masked: Microdata, number: str, divisions: list[tuple[str, ...]]
) -> Iterator[SubgroupAnswer]:
    subgroups: list[tuple[tuple[str, ...], Subgroup]] = []
    for by in divisions:
        measure = WorstSubgroup(MomentChange(on=(number,)), by=by, fewest=MIN_SUBGROUP_RECORDS)
        with suppress(SchemaError, Undefined):  # ordinal columns have no mean
            subgroups += [(by, group) for group in measure.subgroups(original, masked, np.random.default_rng(0))]
    for by, group in sorted(subgroups, key=lambda pair: -pair[1].loss)[:SUBGROUPS_SHOWN]:
        if group.loss > 0:
            pairs = (original, group.rows), (masked, group.released)
            before, after = (float(np.nanmean(data.numbers(number)[rows])) for data, rows in pairs)
            first = original.take(group.rows[:1])
            where = " and ".join(f"{n} = {'missing' if first.missing(n)[0] else first[n][0]}" for n in by)
            yield SubgroupAnswer(f"mean of {number}", where, len(group.rows), before, after, group.loss)


SUBSAMPLE_DRAWS = 8  # subsamples of each size
SCORES_PER_READING = 4 * SUBSAMPLE_DRAWS  # evaluations of a measure, in units of one on the whole file, roughly
MAX_READING_SECONDS = 60.0  # per measure; slower ones are left out of the report


def subsample_equivalents(data: Microdata, scores: Scores, choice: Choice, seed: int) -> list[tuple[str, str]]:
    """Return each utility measure's title, and its score as an equivalent loss of records, or why there is none."""
    measures = [measure for measure in scores.values.values() if measure.axis == "utility"]
    prices = {
        m.text: SCORES_PER_READING * (m.seconds(data) or 0.0) for m in measures
    }  # in seconds; 0: the measure states none
    cheap = [measure for measure in measures if prices[measure.text] <= MAX_READING_SECONDS]
    readings = as_subsample(data, scores, choice, cheap, draws=SUBSAMPLE_DRAWS, seed=seed)
    skipped = "not computed here: it would take about {:.0f} minutes (use `as_subsample`)"
    sentences = {text: skipped.format(seconds / 60) for text, seconds in prices.items()}
    sentences |= {reading.measure: reading.words for reading in readings}
    return [(scores.title_of(measure.text), sentences[measure.text]) for measure in measures]
