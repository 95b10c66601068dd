"""Readings of a column: the scale on which an attacker compares it, and the evidence learned on that scale.

A number can be read as it is, as a logarithm, as a rank, or after the deterministic steps of the method were replayed;
a category as it is, or after those steps. For each column the attacker uses the reading in which true pairs stand out
most from random pairs, among the pairs they learn from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sdcmap.core import Array, Infeasible, Method, Microdata, SchemaError, Stream, Undefined
from sdcmap.data.cells import joint_codes
from sdcmap.data.label_layers import ReadLabels, read_labels
from sdcmap.kernels.tables.record_order import rank_categories
from sdcmap.risk.linkage.field_costs import CATEGORY, Cost
from sdcmap.risk.linkage.file_pair import Pair, infinite_to_missing
from sdcmap.risk.linkage.learned_evidence import Evidence, category_evidence, number_evidence


class LabelCodes(NamedTuple):
    """Codes that compare known values with released labels of a recoded column.

    known : the class of each known value; values that match the same labels form a class, and missing is the last
    released : the label of each released value; missing is the last
    excluded : (class, label): whether no value of the class can have been released under the label
    """

    known: Array
    released: Array
    excluded: Array

    def relabel(self, cost: Cost, absent: float) -> Cost:
        """Return the cost of labels instead of values.

        It is an equality where each value matches one label, otherwise a table in which missing values cost `absent`.
        """
        missing_value, missing_label = (size - 1 for size in self.excluded.shape)
        if ((~self.excluded[:-1, :-1]).sum(axis=1) <= 1).all():
            # Each value matches at most one label: replace it by that label, and the cheaper test of equality is enough.
            matching_label = np.where(
                self.excluded[:, :-1].all(axis=1), missing_label + 1, self.excluded[:, :-1].argmin(axis=1)
            )
            known = np.where(self.known == missing_value, np.nan, matching_label[self.known])
            return cost._replace(known=known, released=np.where(self.released == missing_label, np.nan, self.released))
        table = np.where(self.excluded, cost.cap, 0.0)
        table[-1, :] = table[:, -1] = absent
        codes = self.known.astype(float), self.released.astype(float)
        return Cost(CATEGORY, *codes, float(table.shape[1]), table=table.ravel())


def apply_labels(pair: Pair, index: int, cost: Cost, absent: float) -> Cost:
    """Return the cost of a categorical column, compared by its labels where they can be read.

    absent : cost of a missing value where labels have several depths
    """
    codes = _label_codes(pair, index)
    return cost if codes is None else codes.relabel(cost, absent)


def has_labels(pair: Pair) -> bool:
    """Return whether some column has labels that can be read."""
    return any(_label_codes(pair, index) is not None for index, category in enumerate(pair.categorical) if category)


def _label_codes(pair: Pair, index: int) -> LabelCodes | None:
    return pair.remember(("labels", index), lambda: _build_label_codes(pair, index))


def _build_label_codes(pair: Pair, index: int) -> LabelCodes | None:
    """Return the codes of a recoded column; None where its labels cannot be read or the table would be too large."""
    read = read_labels(pair.known_file, pair.released_file, pair.names[index])
    if read is None:
        return None
    value, label = read.value[pair.known_rows], read.label[pair.released_rows]
    classes, of_value = value_classes(_add_unread_labels(pair, value, label, read))
    if classes.shape[0] * (classes.shape[1] + 1) > MAX_TABLE_CELLS:
        return None
    excluded = np.pad(~classes, ((0, 1), (0, 1)))
    known = np.where(value < 0, len(classes), of_value[value])
    return LabelCodes(known, np.where(label < 0, classes.shape[1], label), excluded)


def value_classes(matches: Array) -> tuple[Array, Array]:
    """Group values that match the same labels; return the matches of each class, and the class of each value."""
    _, first, of_value = np.unique(np.packbits(matches, axis=1), axis=0, return_index=True, return_inverse=True)
    return matches[first], np.append(of_value.ravel(), 0)


def _add_unread_labels(pair: Pair, value: Array, label: Array, read: ReadLabels) -> Array:
    """Return the matches, with labels that cannot be read added from the true pairs.

    The method note says what such a label stands for, so it matches every value that was released under it.
    """
    with_truth = np.flatnonzero((pair.truth >= 0) & (label >= 0))
    own = value[pair.truth[with_truth]]
    is_unread = read.unreadable[label[with_truth]] & (own >= 0)
    matches = read.matches.copy()
    matches[own[is_unread], label[with_truth][is_unread]] = True
    return matches


MAX_TABLE_CELLS = 1_000_000  # cells of a category's cost table; larger tables are replaced by equal or not equal
NUMBER_BINS = 50  # bins of a number that was released as a category, where the recoding cannot be replayed
MAX_TRAINING_PAIRS = 20_000  # pairs from which a column's errors are learned; more would change little
READING_TEST_PAIRS = 2_000  # pairs on which the readings of a column are compared
RANDOM_PARTNERS = 8  # random partners with which each of these pairs is compared


class Reading(NamedTuple):
    """One column of both files on one scale."""

    known: Array
    released: Array
    training: Array  # the same column of the file with the training pairs
    levels: int  # number of codes of a category; 0: a number
    comparable: bool = True  # whether equal codes mean equal values


class TrainingPairs(NamedTuple):
    """Pairs to learn from: known records, and the records of a masked file that were made from them."""

    known_rows: Array
    file: Microdata
    file_rows: Array


ColumnEvidence = list[tuple[Reading, Evidence]]  # for each column its reading and its evidence


def evidence_costs(learned: ColumnEvidence, order: Array | slice = slice(None)) -> list[Cost]:
    """Return the costs of pairs, with the known records in this order."""
    return [evidence.cost(reading.known[order], reading.released) for reading, evidence in learned]


def sort_by_values(file: Microdata) -> tuple[Microdata, Array]:
    """Return the records sorted by their values, without their origin, and the position of each row in that order.

    The order does not depend on the codes of categories.
    """
    codes = [np.where(file.missing(name), np.nan, file.codes(name)) for name in file.names]
    columns = rank_categories(codes, [file.column(name).levels is not None for name in file.names])
    order = np.lexsort(columns[::-1])
    return take_rows(file, order), np.argsort(order)


def take_rows(file: Microdata, rows: Array) -> Microdata:
    """Return these rows as a separate file."""
    part = file.take(rows)
    return Microdata(part.schema, part.columns)


def run_shadow(known: Microdata, method: Method) -> TrainingPairs:
    """Run the published method on the attacker's own records with their own seed, and return the resulting pairs."""
    try:
        shadow = method.apply(known, Stream.of_seed(0, "shadow", method.digest))
    except SchemaError as reason:
        raise Undefined(f"the attacker cannot run the method on their records: {reason}") from None
    except Infeasible as reason:
        raise Undefined(f"the method cannot be run on the attacker's records: {reason}") from None
    if not shadow.paired:
        raise Undefined("the method makes fully synthetic records, so there are no true pairs to learn from.")
    rows = np.arange(len(shadow))
    return TrainingPairs(rows if shadow.origin is None else shadow.origin, shadow, rows)


def learn_columns(
    known: Microdata, released: Microdata, names: tuple[str, ...], training: TrainingPairs, replayed: Microdata | None
) -> ColumnEvidence:
    """Learn the evidence of each column, and keep the reading that separates true pairs best."""
    offers = (
        [(r, _learn_evidence(r, training)) for r in possible_readings(known, released, name, training.file, replayed)]
        for name in names
    )
    return [min(column, key=lambda offer: _confusion_rate(offer[0], offer[1], training)) for column in offers]


def possible_readings(
    known: Microdata, released: Microdata, name: str, training: Microdata, replayed: Microdata | None
) -> Iterator[Reading]:
    """Yield the readings of a column; of equally good ones the first is used."""
    sources = [known] if replayed is None or name not in replayed.changes else [known, replayed]
    numeric = released.column(name).levels is None and training.column(name).levels is None
    # Only a source of the same kind as the released column, numbers or categories, can be compared directly.
    alike = [source for source in sources if (source.column(name).levels is None) == numeric]
    for source in alike:
        if numeric:
            yield from _numeric_readings(source, name, released.numbers(name), training.numbers(name))
        else:
            yield _categorical_reading(source, released, training, name)
    if not alike:
        yield _bin_reading(known, released, training, name)
        yield from _label_readings(known, released, training, name)


def _number_scales(values: Array) -> tuple[Array, float, Array, Array]:
    """Return known numbers as they are, their typical size (0: none), their logarithms and their ranks."""
    plain = infinite_to_missing(values)
    size = np.abs(plain[~np.isnan(plain) & (plain != 0)])
    unit = float(np.median(size)) if len(size) else 0.0
    return plain, unit, np.arcsinh(plain / (unit or 1.0)), _ranks(plain)


def _numeric_readings(source: Microdata, name: str, released: Array, training: Array) -> Iterator[Reading]:
    """Yield the readings of a numeric column: plain, logarithm and rank."""
    # arcsinh is a logarithm for values beyond the typical size, and defined for zero and negative values.
    plain, unit, logarithms, ranks = source.remember(("readings", name), lambda: _number_scales(source.numbers(name)))
    released, training = infinite_to_missing(released), infinite_to_missing(training)
    yield Reading(plain, released, training, 0)
    if unit:
        yield Reading(logarithms, np.arcsinh(released / unit), np.arcsinh(training / unit), 0)
    yield Reading(ranks, _ranks(released), _ranks(training), 0)


def _ranks(values: Array) -> Array:
    """Return the share of a column's values below each value, with ties at their middle; missing stays missing."""
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]  # missing values come last
    edge = np.concatenate([[0], np.flatnonzero(np.diff(values[order]) != 0) + 1, [len(order)]])
    ranks = np.full(len(values), np.nan)
    ranks[order] = np.repeat((edge[:-1] + edge[1:]) / (2 * max(len(order), 1)), np.diff(edge))
    return ranks


def _categorical_reading(known: Microdata, released: Microdata, training: Microdata, name: str) -> Reading:
    """Return the reading of a category in codes shared by all files."""
    (known_codes, released_codes, training_codes), levels = joint_codes([known, released, training], name)
    return Reading(known_codes, released_codes, training_codes, levels if levels * levels <= MAX_TABLE_CELLS else 0)


def _bin_reading(known: Microdata, released: Microdata, training: Microdata, name: str) -> Reading:
    """Return the reading of a number released as a category, or a category as a number, in codes without an order."""
    if known.column(name).levels is not None:
        (codes,), levels = joint_codes([known], name)
        index = _bins(np.concatenate([released.numbers(name), training.numbers(name)]))
        return Reading(
            codes, index[: len(released)], index[len(released) :], max(levels, NUMBER_BINS + 1), comparable=False
        )
    (released_codes, training_codes), levels = joint_codes([released, training], name)
    return Reading(
        _bins(known.numbers(name)), released_codes, training_codes, max(levels, NUMBER_BINS + 1), comparable=False
    )


def _label_readings(known: Microdata, released: Microdata, training: Microdata, name: str) -> Iterator[Reading]:
    """Yield the reading of a number released as a label, in classes of values that match the same labels."""
    read = read_labels(known, released, name)
    if read is None or not read.matches.any():
        return
    classes, of_value = value_classes(read.matches)
    (released_codes, training_codes), levels = joint_codes([released, training], name)
    count = max(levels, len(classes) + 1)
    if count * count <= MAX_TABLE_CELLS:
        known_codes = np.where(read.value < 0, len(classes), of_value[read.value])
        yield Reading(known_codes, released_codes, training_codes, count, comparable=False)


def _bins(values: Array) -> Array:
    """Return numbers in NUMBER_BINS classes of about equal counts; missing is one more class."""
    ranks = _ranks(values)
    return np.where(
        np.isnan(ranks), NUMBER_BINS, np.minimum(np.nan_to_num(ranks) * NUMBER_BINS, NUMBER_BINS - 1)
    ).astype(np.int64)


def _learn_evidence(reading: Reading, training: TrainingPairs) -> Evidence:
    """Learn the evidence of a column from the training pairs, or from a sample of them."""
    sample = _spread_indices(len(training.known_rows), MAX_TRAINING_PAIRS)
    known, masked = reading.known[training.known_rows[sample]], reading.training[training.file_rows[sample]]
    if reading.levels:
        return category_evidence(known, masked, reading.training, reading.levels, reading.comparable)
    every = (
        side[_spread_indices(len(side), MAX_TRAINING_PAIRS)].astype(float) for side in (reading.known, reading.training)
    )
    return number_evidence(known.astype(float), masked.astype(float), *every)


def _spread_indices(count: int, most: int) -> Array:
    """Return the indices 0 to count - 1, or `most` of them, evenly spaced."""
    return np.linspace(0, count - 1, min(most, count)).astype(np.int64)


def _confusion_rate(reading: Reading, evidence: Evidence, training: TrainingPairs) -> float:
    """Return the share of random partners that fit a record better than the true one; an equal fit counts one half."""
    sample = _spread_indices(len(training.known_rows), READING_TEST_PAIRS)
    masked = reading.training[training.file_rows[sample]].astype(float)
    true = evidence(reading.known[training.known_rows[sample]].astype(float), masked)
    n = len(reading.known)
    # Partners at fixed offsets in the file, so that the choice of a reading does not depend on a random draw.
    other = (training.known_rows[sample] + 1 + (np.arange(RANDOM_PARTNERS) * n // RANDOM_PARTNERS)[:, np.newaxis]) % n
    cost = evidence(reading.known[other].astype(float), masked)
    # Rounded, so that readings that differ only by floating-point error tie and the first is used.
    confused: list[float] = ((cost < true).mean(axis=1) + 0.5 * (cost == true).mean(axis=1)).tolist()
    return round(sum(confused) / RANDOM_PARTNERS, 6)


# ---- learning without true pairs ------------------------------------------------------------------------------
# Links that are taken for true: rows of the known file, and positions in the released file.
ProvisionalLinks = tuple[Array, Array]


def link_most_similar(known: Microdata, released: Microdata, names: tuple[str, ...], sample: Array) -> ProvisionalLinks:
    """Link some released records to their most similar known record, and keep the surer half of the links.

    Numbers are compared by rank, categories by equality, and every column counts the same.
    """
    distance = np.zeros((len(known), len(sample)))
    for name in names:
        reading = list(possible_readings(known, released, name, released, None))[-1]  # of a number: its rank
        gap = np.abs(reading.known.astype(float)[:, np.newaxis] - reading.released.astype(float)[sample])
        distance += np.where(np.isnan(gap), 0.5, np.minimum(gap, 1.0) if reading.levels == 0 else gap > 0)
    return keep_surer_half(distance, sample)


def keep_surer_half(costs: Array, positions: Array) -> ProvisionalLinks:
    """Return the cheapest known record of each column of costs, where its margin is at least the median margin."""
    rows = costs.argmin(axis=0)
    if len(costs) < 2:
        return rows, positions
    two = np.partition(costs, 1, axis=0)[:2]
    margin = two[1] - two[0]
    sure = margin >= np.median(margin)
    return rows[sure], positions[sure]
