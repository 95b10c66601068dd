"""What users will ask the file, answered by the original and by the release: tables, means, regressions, the subgroups for
which answers differ most, and what each score costs in records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Choice, Measure, Microdata, SchemaError, Undefined
from sdcmap.core.audience import SMALL, significant
from sdcmap.data.schema import NEVER_RELEASED
from sdcmap.data.tables import table
from sdcmap.study.scores import Scores
from sdcmap.study.subsamples import as_subsample
from sdcmap.utility.moment_change import MomentChange
from sdcmap.utility.worst_subgroup import Subgroup, WorstSubgroup

MOST_LEVELS = 30  # a column with more categories makes no groups
MOST_KEYS = 8  # columns of categories that make groups and tables
MOST_NUMBERS = 8
LEAST = 3 * SMALL  # records a subgroup must have before it is named
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
    return [
        *_tables(original, masked, groups),
        *_means(original, masked, numbers),
        *_fits(original, masked, groups, numbers),
    ]


def _tables(original: Microdata, masked: Microdata, groups: Sequence[str]) -> Iterator[Answer]:
    pairs: list[tuple[str, ...]] = [*combinations(groups, 2)] or [(name,) for name in groups]
    if not pairs:
        return
    right = held = 0
    for names in pairs:
        counted = table(original, masked, names)
        asked = counted.before >= SMALL
        held += int(asked.sum())
        right += int((np.abs(counted.after - counted.before)[asked] <= FAR * counted.before[asked]).sum())
    if held:
        what = "tables of two columns" if len(pairs[0]) == 2 else "tables of one column"
        question = f"In {len(pairs)} {what}, how many cells of {SMALL} records or more are right within {FAR:.0%}?"
        yield Answer(question, f"{held:,}", f"{right:,} ({significant(100 * right / held, 3)} %)")


def _means(original: Microdata, masked: Microdata, numbers: Sequence[str]) -> Iterator[Answer]:
    for name in numbers:
        before, after = _known(original, name), _known(masked, name)
        if min(len(before), len(after)) >= SMALL:
            yield Answer(
                f"What is the mean of {name}?",
                significant(float(before.mean()), 4),
                significant(float(after.mean()), 4),
            )


def _fits(original: Microdata, masked: Microdata, groups: Sequence[str], numbers: Sequence[str]) -> Iterator[Answer]:
    """How much of a number's variance the others and the groups explain (R^2 of a linear regression)."""
    for name in numbers:
        others = [other for other in numbers if other != name]
        if not others and not groups:
            return
        shares = [_explained(data, name, others, groups, original) for data in (original, masked)]
        if None not in shares:
            question = f"How much of {name} do the other columns explain (R² of a regression)?"
            yield Answer(question, *(significant(share, 3) for share in shares if share is not None))


def _explained(
    data: Microdata, name: str, others: Sequence[str], groups: Sequence[str], like: Microdata
) -> float | None:
    y = data.numbers(name)
    terms = [data.numbers(other) for other in others]
    terms += [_indicator(data, group, level) for group in groups for level in _levels(like, group)[1:]]
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
    asked = [(f"mean of {name}", _columns(original, masked, name)) for name in numbers]
    asked += [
        (f"share of {other} = {level}", (_indicator(original, other, level), _indicator(masked, other, level)))
        for other in groups
        if other != group
        for level in _levels(original, other)
    ]
    for level in _levels(original, group):
        here, there = _indicator(original, group, level) > 0, _indicator(masked, group, level) > 0
        if here.sum() < LEAST:
            continue
        for what, (before, after) in asked:
            a, b, spread = _mean(before[here]), _mean(after[there]), np.nanstd(before)
            if a is not None and spread > 0:
                off = np.inf if b is None else (b - a) / spread
                yield SubgroupAnswer(
                    what, f"{group} = {level}", int(here.sum()), a, np.nan if b is None else b, float(off)
                )


def _columns(original: Microdata, masked: Microdata, name: str) -> tuple[Array, Array]:
    return original.numbers(name), masked.numbers(name)


def _mean(values: Array) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _known(data: Microdata, name: str) -> Array:
    values = data.numbers(name)
    return values[np.isfinite(values)]


def _levels(data: Microdata, name: str) -> list[str]:
    levels = data.column(name).levels
    return [] if levels is None else [str(level) for level in levels.to_list() if level is not None]


def _indicator(data: Microdata, name: str, level: str) -> Array:
    """1 for records of this category, by its words: a masked file may have other codes."""
    levels = data.column(name).levels
    assert levels is not None
    words = ["" if value is None else str(value) for value in levels.to_list()]
    hits: Array = np.isin(data.column(name).values, [code for code, word in enumerate(words) if word == level]).astype(
        float
    )
    return hits


def _released(original: Microdata, masked: Microdata) -> list[str]:
    apart = (*NEVER_RELEASED, "weight", "household", "stratum")
    return [v.name for v in original.schema.variables if v.role not in apart and v.name in masked.names]


def groups_of(original: Microdata, masked: Microdata) -> list[str]:
    """Columns of few categories in both files, keys first."""
    names = sorted(_released(original, masked), key=lambda name: original.schema[name].role != "key")
    few = [
        name
        for name in names
        if all(data.column(name).levels is not None for data in (original, masked))
        and 1 < original.level_count(name) <= MOST_LEVELS
    ]
    return few[:MOST_KEYS]


def numbers_of(original: Microdata, masked: Microdata) -> list[str]:
    """Columns that are numbers in both files, the sensitive ones first."""
    names = sorted(_released(original, masked), key=lambda name: original.schema[name].role != "sensitive")
    plain = [name for name in names if all(data.column(name).levels is None for data in (original, masked))]
    return plain[:MOST_NUMBERS]


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
) -> list[SubgroupAnswer]:
    found: list[tuple[tuple[str, ...], Subgroup]] = []
    for by in divisions:
        measure = WorstSubgroup(MomentChange(on=(number,)), by=by, fewest=LEAST)
        try:
            found += [(by, group) for group in measure.subgroups(original, masked, np.random.default_rng(0))]
        except (SchemaError, Undefined):  # an order that has no mean
            continue
    worst = sorted(found, key=lambda pair: -pair[1].loss)[:WORST]
    return [_told(original, masked, number, by, group) for by, group in worst if group.loss > 0]


def _told(original: Microdata, masked: Microdata, number: str, by: tuple[str, ...], group: Subgroup) -> SubgroupAnswer:
    pairs = (original, group.rows), (masked, group.released)
    before, after = (float(np.nanmean(data.numbers(number)[rows])) for data, rows in pairs)
    first = original.take(group.rows[:1])
    where = " and ".join(f"{name} = {_word(first, name)}" for name in by)
    return SubgroupAnswer(f"mean of {number}", where, len(group.rows), before, after, group.loss)


def _word(first: Microdata, name: str) -> str:
    """The category of a record, as the file says it."""
    return "missing" if first.missing(name)[0] else str(first[name][0])


DRAWS = 8  # subsamples of each share
SCORES = 4 * DRAWS  # of the whole file, about, that a reading takes
MOST_SECONDS = 60.0  # for one measure: a report does not keep people waiting


def in_records(data: Microdata, scores: Scores, choice: Choice, seed: int) -> list[tuple[str, str]]:
    """Each utility measure in words, and its score read as a share of the records thrown away, or why it is not."""
    measures = [measure for measure in scores.values.values() if measure.axis == "utility"]
    dear = {m.text: seconds for m in measures if (seconds := _price(m, data)) > MOST_SECONDS}
    cheap = [measure for measure in measures if measure.text not in dear]
    readings = as_subsample(data, scores, choice, cheap, draws=DRAWS, seed=seed)
    told = {reading.measure: reading.words for reading in readings}
    told |= {
        text: f"not read here: it would take about {dear[text] / 60:.0f} minutes (`as_subsample`)" for text in dear
    }
    return [(scores.words_of(measure.text), told[measure.text]) for measure in measures]


def _price(measure: Measure, data: Microdata) -> float:
    """Seconds that its reading takes, where the measure states its own; 0 where it does not."""
    return SCORES * (measure.seconds(data) or 0.0)
