"""Columns as a snooper reads them: both files in units in which true pairs stand out, and what he learned of each.

A number may be read as it is, as a logarithm, as a rank, or after the deterministic steps of the method were done again; a
category as it is, or after them. Of the readings of a column the one counts in which true pairs stand out most from random
ones, among the pairs from which he learns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Infeasible, Method, Microdata, SchemaError, Stream, Undefined
from sdcmap.data.cells import joint_codes
from sdcmap.data.label_layers import ReadLabels, read_labels
from sdcmap.risk.linkage.field_costs import CATEGORY, Cost
from sdcmap.risk.linkage.file_pair import Pair, finite
from sdcmap.risk.linkage.learned_evidence import Evidence, category_evidence, number_evidence

# Columns that were released in other categories than the snooper's, as he reads them: what two values cost as a pair.


class LabelCodes(NamedTuple):
    """Known records by what their value may be behind, released ones by their label, in codes; missing is the last of
    either. apart: whether nobody with the first can be behind the second."""

    known: Array
    released: Array
    apart: Array

    def asked_of(self, cost: Cost, absent: float) -> Cost:
        """The same question of labels in place of values: equality where each value has one label, else by a table, where
        what is missing costs `absent`."""
        missing_value, missing_label = (size - 1 for size in self.apart.shape)
        if ((~self.apart[:-1, :-1]).sum(axis=1) <= 1).all():
            behind = np.where(self.apart[:, :-1].all(axis=1), missing_label + 1, self.apart[:, :-1].argmin(axis=1))
            known = np.where(self.known == missing_value, np.nan, behind[self.known])
            return cost._replace(known=known, released=np.where(self.released == missing_label, np.nan, self.released))
        table = np.where(self.apart, cost.cap, 0.0)
        table[-1, :] = table[:, -1] = absent
        codes = self.known.astype(float), self.released.astype(float)
        return Cost(CATEGORY, *codes, float(table.shape[1]), table=table.ravel())


def as_read(pair: Pair, place: int, cost: Cost, absent: float) -> Cost:
    """What the values of a categorical column cost, by its labels where a snooper reads them; absent: where one of both is
    missing, and labels are of several depths."""
    codes = _codes_of(pair, place)
    return cost if codes is None else codes.asked_of(cost, absent)


def labeled(pair: Pair) -> bool:
    """Whether some column holds labels that are read."""
    return any(_codes_of(pair, place) is not None for place, category in enumerate(pair.categorical) if category)


def _codes_of(pair: Pair, place: int) -> LabelCodes | None:
    return pair.remember(("labels", place), lambda: _label_codes(pair, place))


def _label_codes(pair: Pair, place: int) -> LabelCodes | None:
    read = read_labels(pair.known_file, pair.released_file, pair.names[place])
    if read is None:
        return None
    value, label = read.value[pair.known_rows], read.label[pair.released_rows]
    classes, of_value = value_classes(_with_the_note(pair, value, label, read))
    if classes.shape[0] * (classes.shape[1] + 1) > MOST_CELLS:
        return None
    apart = np.pad(~classes, ((0, 1), (0, 1)))
    known = np.where(value < 0, len(classes), of_value[value])
    return LabelCodes(known, np.where(label < 0, classes.shape[1], label), apart)


def value_classes(matches: Array) -> tuple[Array, Array]:
    """Values that may be behind the same labels are one class: the matches of each class, and the class of each value."""
    _, first, of_value = np.unique(np.packbits(matches, axis=1), axis=0, return_index=True, return_inverse=True)
    return matches[first], np.append(of_value.ravel(), 0)


def _with_the_note(pair: Pair, value: Array, label: Array, read: ReadLabels) -> Array:
    """The matches where labels that cannot be read are what the note of the method says: any value of somebody who has
    them."""
    held = np.flatnonzero((pair.truth >= 0) & (label >= 0))
    own = value[pair.truth[held]]
    told = read.unreadable[label[held]] & (own >= 0)
    matches = read.matches.copy()
    matches[own[told], label[held][told]] = True
    return matches


MOST_CELLS = 1_000_000  # of the table of a category's codes before and after; beyond, they agree or not
BINS = 50  # of a number that was released as a category and cannot be made one again
LESSONS = 20_000  # true pairs from which a column's errors are learned
TRIED = 2_000  # true pairs on which the readings of a column are compared
AGAINST = 8  # random partners of each


class Reading(NamedTuple):
    """One column of the files in one way of reading it."""

    known: Array
    released: Array
    lesson: Array  # the column of the released side of the pairs to learn from
    levels: int  # of a category; 0: a number
    comparable: bool = True  # whether equal codes mean equal values


class Lesson(NamedTuple):
    """Pairs to learn from: rows of the known file, and the records that were made from them."""

    rows: Array
    file: Microdata
    made: Array  # rows of the file


Learned = list[tuple[Reading, Evidence]]  # every column in its reading, and its evidence


def learned_costs(learned: Learned, place: Array | slice = slice(None)) -> list[Cost]:
    """What pairs cost, the known records in this order."""
    return [evidence.cost(reading.known[place], reading.released) for reading, evidence in learned]


def in_own_order(file: Microdata) -> tuple[Microdata, Array]:
    """The same records in an order that their values alone decide, with no memory of where they came from; and the place
    of each row in it."""
    order = np.lexsort([file.codes(name) for name in reversed(file.names)])
    return taken(file, order), np.argsort(order)


def taken(file: Microdata, rows: Array) -> Microdata:
    """These rows as a file of their own."""
    part = file.take(rows)
    return Microdata(part.schema, part.columns)


def shadow_of(known: Microdata, method: Method) -> Lesson:
    """The snooper's own run of the published method, on his own records and with a seed of his own."""
    try:
        shadow = method.apply(known, Stream.of_seed(0, "shadow", method.digest))
    except SchemaError as reason:
        raise Undefined(f"the snooper cannot run the method on his records: {reason}") from None
    except Infeasible as reason:
        raise Undefined(f"the method cannot be run on the snooper's records: {reason}") from None
    if not shadow.paired:
        raise Undefined("the method makes records of nobody, so no true pair can be learned from.")
    made = np.arange(len(shadow))
    return Lesson(made if shadow.origin is None else shadow.origin, shadow, made)


def learn(
    known: Microdata, released: Microdata, names: tuple[str, ...], lesson: Lesson, again: Microdata | None
) -> Learned:
    """The evidence of each column, in its best reading."""
    offers = (
        [(r, _evidence(r, lesson)) for r in readings(known, released, name, lesson.file, again)] for name in names
    )
    return [min(column, key=lambda offer: _confusion(offer[0], offer[1], lesson)) for column in offers]


def readings(
    known: Microdata, released: Microdata, name: str, lesson: Microdata, again: Microdata | None
) -> Iterator[Reading]:
    """The ways in which a column can be read; the first of equals counts."""
    sources = [known] if again is None or name not in again.changes else [known, again]
    numeric = released.column(name).levels is None and lesson.column(name).levels is None
    alike = [source for source in sources if (source.column(name).levels is None) == numeric]
    for source in alike:
        if numeric:
            yield from _numbers(source, name, released.numbers(name), lesson.numbers(name))
        else:
            yield _categories(source, released, lesson, name)
    if not alike:
        yield _binned(known, released, lesson, name)
        yield from _labeled(known, released, lesson, name)


def _read_numbers(values: Array) -> tuple[Array, float, Array, Array]:
    """A column of known numbers as it is, its typical size (0: it has none), its logarithms and its ranks."""
    plain = finite(values)
    size = np.abs(plain[~np.isnan(plain) & (plain != 0)])
    unit = float(np.median(size)) if len(size) else 0.0
    return plain, unit, np.arcsinh(plain / (unit or 1.0)), _ranks(plain)


def _numbers(source: Microdata, name: str, released: Array, lesson: Array) -> Iterator[Reading]:
    plain, unit, logarithms, ranks = source.remember(("readings", name), lambda: _read_numbers(source.numbers(name)))
    released, lesson = finite(released), finite(lesson)
    yield Reading(plain, released, lesson, 0)
    if unit:
        yield Reading(logarithms, np.arcsinh(released / unit), np.arcsinh(lesson / unit), 0)
    yield Reading(ranks, _ranks(released), _ranks(lesson), 0)


def _ranks(values: Array) -> Array:
    """The share of a column's values that are below each, ties at their middle; missing stays missing."""
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]  # missing values come last
    edge = np.concatenate([[0], np.flatnonzero(np.diff(values[order]) != 0) + 1, [len(order)]])
    ranks = np.full(len(values), np.nan)
    ranks[order] = np.repeat((edge[:-1] + edge[1:]) / (2 * max(len(order), 1)), np.diff(edge))
    return ranks


def _categories(known: Microdata, released: Microdata, lesson: Microdata, name: str) -> Reading:
    (ours, theirs, taught), levels = joint_codes([known, released, lesson], name)
    return Reading(ours, theirs, taught, levels if levels * levels <= MOST_CELLS else 0)


def _binned(known: Microdata, released: Microdata, lesson: Microdata, name: str) -> Reading:
    """A number that was released as a category, or a category as a number: codes that only a table can compare."""
    if known.column(name).levels is not None:
        (codes,), levels = joint_codes([known], name)
        place = _bins(np.concatenate([released.numbers(name), lesson.numbers(name)]))
        return Reading(codes, place[: len(released)], place[len(released) :], max(levels, BINS + 1), comparable=False)
    (theirs, taught), levels = joint_codes([released, lesson], name)
    return Reading(_bins(known.numbers(name)), theirs, taught, max(levels, BINS + 1), comparable=False)


def _labeled(known: Microdata, released: Microdata, lesson: Microdata, name: str) -> Iterator[Reading]:
    """A number that was released as a label, by the labels that it may be behind."""
    read = read_labels(known, released, name)
    if read is None or not read.matches.any():
        return
    classes, of_value = value_classes(read.matches)
    (theirs, taught), levels = joint_codes([released, lesson], name)
    count = max(levels, len(classes) + 1)
    if count * count <= MOST_CELLS:
        ours = np.where(read.value < 0, len(classes), of_value[read.value])
        yield Reading(ours, theirs, taught, count, comparable=False)


def _bins(values: Array) -> Array:
    """Numbers in BINS classes of about equal counts; missing is the last."""
    ranks = _ranks(values)
    return np.where(np.isnan(ranks), BINS, np.minimum(np.nan_to_num(ranks) * BINS, BINS - 1)).astype(np.int64)


def _evidence(reading: Reading, lesson: Lesson) -> Evidence:
    """What the pairs of the lesson tell, or LESSONS of them, evenly spaced."""
    some = _spaced(len(lesson.rows), LESSONS)
    known, made = reading.known[lesson.rows[some]], reading.lesson[lesson.made[some]]
    if reading.levels:
        return category_evidence(known, made, reading.lesson, reading.levels, reading.comparable)
    every = (side[_spaced(len(side), LESSONS)].astype(float) for side in (reading.known, reading.lesson))
    return number_evidence(known.astype(float), made.astype(float), *every)


def _spaced(count: int, most: int) -> Array:
    """Places 0 to count - 1, or `most` of them, evenly spaced."""
    return np.linspace(0, count - 1, min(most, count)).astype(np.int64)


def _confusion(reading: Reading, evidence: Evidence, lesson: Lesson) -> float:
    """The share of random partners that fit a record better than the true one, an equal fit counting half."""
    some = _spaced(len(lesson.rows), TRIED)
    made = reading.lesson[lesson.made[some]].astype(float)
    true = evidence(reading.known[lesson.rows[some]].astype(float), made)
    n = len(reading.known)
    other = (lesson.rows[some] + 1 + (np.arange(AGAINST) * n // AGAINST)[:, np.newaxis]) % n
    cost = evidence(reading.known[other].astype(float), made)
    confused: list[float] = ((cost < true).mean(axis=1) + 0.5 * (cost == true).mean(axis=1)).tolist()
    return round(sum(confused) / AGAINST, 6)


# ---- without a teacher ----------------------------------------------------------------------------------------
Likest = tuple[Array, Array]  # links that are taken for true: rows of the known file, and places of the released one


def likest_records(known: Microdata, released: Microdata, names: tuple[str, ...], some: Array) -> Likest:
    """The likest known record of each of some released ones, the surer half of them: ranks of numbers and categories
    compared, each column counting as much."""
    apart = np.zeros((len(known), len(some)))
    for name in names:
        reading = list(readings(known, released, name, released, None))[-1]  # of a number: its rank
        gap = np.abs(reading.known.astype(float)[:, np.newaxis] - reading.released.astype(float)[some])
        apart += np.where(np.isnan(gap), 0.5, np.minimum(gap, 1.0) if reading.levels == 0 else gap > 0)
    return surer_half(apart, some)


def surer_half(costs: Array, places: Array) -> Likest:
    """The cheapest known record of each column of costs, where it beats the next by the median margin or more."""
    rows = costs.argmin(axis=0)
    if len(costs) < 2:
        return rows, places
    two = np.partition(costs, 1, axis=0)[:2]
    margin = two[1] - two[0]
    sure = margin >= np.median(margin)
    return rows[sure], places[sure]
