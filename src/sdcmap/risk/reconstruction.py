"""How much of a person's record can be reconstructed from the nearest released records, rare values counting more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, Undefined
from sdcmap.core.refits import Refit
from sdcmap.data.cells import common_codes
from sdcmap.kernels.statistics.unit_errors import unit_error
from sdcmap.kernels.tables.column_guesses import nearest_without_column
from sdcmap.risk._control import Controlled, Split, Units, distance_inputs, numeric_ranges, recode_by_method
from sdcmap.risk._secrets import check_comparable

NEAREST_RECORD_ERROR = 1.4  # the error of guesses by the nearest record, relative to that of random guesses (simulated)
BINS = 20  # of the values of a number, with equally many people


class Outcome(NamedTuple):
    """Success on each member and each non-member (rows) for each guessed column, and the weights of their true values.

    `units`: the household of each person. `is_paired`: both groups are the same people, as members of one refit and
    non-members of another.
    """

    right: tuple[Array, Array]
    weight: tuple[Array, Array]
    units: Units
    is_paired: bool

    @property
    def rates(self) -> tuple[float, float]:
        """Return the weighted success rate of both groups."""
        members, others = (_weighted_mean(*group)[0] for group in zip(self.right, self.weight, self.units, strict=True))
        return members, others

    @property
    def gain(self) -> tuple[float, float]:
        """Return the rate of members minus that of non-members, and its standard error over households."""
        if self.is_paired:
            return _weighted_mean(self.right[0] - self.right[1], self.weight[0], self.units[0])
        # a household is in one group only
        (a, error_a), (b, error_b) = (
            _weighted_mean(*group) for group in zip(self.right, self.weight, self.units, strict=True)
        )
        return a - b, math.hypot(error_a, error_b)


def _weighted_mean(values: Array, weight: Array, units: Array) -> tuple[float, float]:
    """Return sum of weight x value / sum of weight over people and columns, and its error over units (a ratio)."""
    whole = float(weight.sum())
    mean = float((weight * values).sum()) / whole
    error = unit_error(units, (weight * (values - mean)).sum(axis=1) / whole)
    # the second term keeps the error above 0 where all people are equal
    return mean, math.hypot(error, math.sqrt(2 / weight.shape[1]) / len(weight))


def rarity(codes: Array) -> Array:
    """Return -log2 of the share of each code among the values; 0 for a value that is missing (code -1).

    >>> rarity(np.array([0, 0, 1, 2, -1]))
    array([1., 1., 2., 2., 0.])
    """
    present = codes >= 0
    count = np.bincount(codes[present], minlength=int(codes.max(initial=0)) + 1)
    return np.where(present, -np.log2(np.maximum(count, 1) / max(1, present.sum()))[codes], 0.0) + 0.0


def bin_edges(x: Array) -> Array:
    """Return the inner edges of at most 20 classes of equally many values; equal values are in one class."""
    present = np.sort(x[np.isfinite(x)])
    if not len(present):
        return present
    return np.unique(present[np.arange(1, BINS) * len(present) // BINS])


@dataclass(frozen=True)
class Reconstruction(Controlled):
    """How much better an attacker reconstructs the records of members of the release than of non-members.

    The attacker knows a person except for one value, finds the nearest released record on all other columns, and takes its
    value for the person's. They do so for each column in turn. A rare value that is right counts more than a common one:
    the weight is the information in it. This is the idea of the winners of a red-team exercise; a file can hide
    average people and still reveal those who are unlike others.

    Parameters
    ----------
    on : the variables, of any kind: each is guessed in turn from the others, at least 2; by default every column that
        others could know.
    columns : at most so many of them are guessed, evenly spaced in the order of the file, at least 1.

    Formula: gain = sum of w x right over sum of w, over people and columns, of members minus that of non-members; w =
        -log2 of the share of the true value in the original. Numbers: the guess is right if it is in the same of 20
        classes of equally many people (equal values are in one class), and w is that of the class. Gower's distance:
        |x - y| / range, at most 1, for numbers, 0 or 1 for categories; ties give the mean success.
    With refits the value describes the method on these data: the same people are attacked in the refits with and without
        them (with a single refit: different people).
    `parts`: "members" and "non-members", the weighted rates; "worst column", the largest gain of a single one; "columns",
        how many are guessed; "refits".
    Missing is a category of what the attacker knows; a missing true value is not guessed, and a missing released value is
        no right guess. Recoded variables are compared in the released categories; a column whose categories cannot be
        compared is not guessed. Weights are not used. Households: persons are attacked one by one; a refit leaves out
        whole households.
    Reference: National Institute of Standards and Technology, Collaborative Research Cycle (2025), red-team exercise.

    Examples
    --------
    >>> Reconstruction(columns=5).text
    'Reconstruction(columns=5)'
    """

    label: ClassVar[str] = "Records reconstructed (gain of members)"
    description: ClassVar[str] = (
        "How much more of a record is guessed correctly for people in the file than for people outside it; rare "
        "values count more."
    )
    columns_by_default: ClassVar = "knowable"
    can_be_spared: ClassVar[bool] = True
    revision: ClassVar[int] = 2  # 2: people drawn by household

    on: tuple[str, ...] = ()
    columns: Annotated[int, Range(1)] = 8

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if len(self.variables(data)) < 2:
            yield "Reconstruction needs at least 2 variables: one is guessed from the others."

    def seconds(self, data: Microdata) -> float | None:
        return 2 * self.pair_seconds(data) * max(1, self.folds)

    def error_at_baseline(self, data: Microdata, rows: int | None = None) -> float | None:
        """Return the error of the gain if the values of the nearest record say no more than those of a random person.

        The same people are attacked without and with them, as for AttributeInference. The guesses of one record are right
        or wrong together, so the error is larger than that of a random person for each column.
        """
        guessed = self.guessed_columns(self.variables(data))
        chance, weight = np.stack([_chance_and_weight(data, name) for name in guessed], axis=-1)
        count = min(self.held_out * self.count_people(data, rows), self.max_people_drawn())
        if count < 1 or not weight.any():
            return None
        variance = float((weight**2 * chance * (1 - chance)).sum()) / float(weight.sum()) ** 2 * len(weight)
        random = math.sqrt(variance * (1 + 1 / max(1, self.folds - 1)) / (count * self.rounds))
        return math.hypot(NEAREST_RECORD_ERROR * random, math.sqrt(2 / len(guessed)) / count)

    def guessed_columns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns to guess, evenly spaced among these."""
        return tuple(dict.fromkeys(names[i * len(names) // self.columns] for i in range(self.columns)))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names, others = self.check_variables(original), self.read_control_people(original)
        recoded, masked = self.align_categories(original, masked)
        split = self.split(recoded, masked, others, rng)
        truths = self._truths(recoded, [masked], names)
        right, weight = zip(
            *(self._attack(people, recoded, split.released, names, truths) for people in split[:2]), strict=True
        )
        return self._estimate(Outcome(right, weight, split.units, is_paired=False), len(truths))

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        names = self.check_variables(original)
        recoded = recode_by_method(original, self.method, self.columns_to_compare(original))
        truths = self._truths(recoded, [refit.released for refit in refits], names)
        if len(refits) == 1:
            split: Split = self.split_refit(recoded, refits[0], rng)
            groups = [self._attack(people, recoded, refits[0].released, names, truths) for people in split[:2]]
            right, weight = zip(*groups, strict=True)
            return self._estimate(Outcome(right, weight, split.units, is_paired=False), len(truths))
        rows, inside, outside = self.draw_exchangeable_people(refits, np.ones(len(original), dtype=bool), rng)
        people = recoded.take(rows)
        outcomes = [self._attack(people, recoded, refit.released, names, truths) for refit in refits]
        success, weights = (
            np.array([right for right, _ in outcomes]),
            outcomes[0][1],
        )  # of each refit, person and column
        members, others = (np.einsum("kp,kpc->pc", mask / mask.sum(axis=0), success) for mask in (inside, outside))
        units = original.units[rows]
        outcome = Outcome((members, others), (weights, weights), (units, units), is_paired=True)
        estimate = self._estimate(outcome, len(truths))
        return replace(estimate, parts={**estimate.parts, "refits": float(len(refits))})

    def _truths(self, original: Microdata, released: Sequence[Microdata], names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns to guess whose released values can be compared with the true ones."""
        comparable = []
        for name in self.guessed_columns(names):
            try:
                for file in released:
                    check_comparable(original, file, name)
                comparable.append(name)
            except Undefined as reason:
                problem = reason
        if not comparable:
            raise problem
        return tuple(comparable)

    def _attack(
        self,
        people: Microdata,
        original: Microdata,
        released: Microdata,
        names: tuple[str, ...],
        guessed: tuple[str, ...],
    ) -> tuple[Array, Array]:
        """Return the success with each of these people and guessed columns, and the weights of the true values."""
        ranges = numeric_ranges(original, names)
        inputs = [distance_inputs(people, released, (name,), ranges)[:4] for name in names]
        numbers, codes = (np.concatenate([[i] * part[k].shape[1] for i, part in enumerate(inputs)]) for k in (0, 1))
        fields = [np.hstack([part[k] for part in inputs]) for k in range(4)]
        truth, guess, weight = (np.column_stack(each) for each in zip(
            *(_compare(people, original, released, name) for name in guessed), strict=True
        ))  # fmt: skip
        if not weight.sum() > 0:
            raise Undefined("every value that could be guessed is the same for all people, or missing.")
        column = np.concatenate([numbers, codes]).astype(np.int64)
        positions = np.array([names.index(name) for name in guessed])
        x, c, y, d = fields
        return nearest_without_column(x, c, y, d, column, positions, truth, guess), weight

    def _estimate(self, outcome: Outcome, columns: int) -> Estimate:
        members, others = outcome.rates
        single = []
        for k in range(columns):
            part = [tuple(side[:, [k]] for side in sides) for sides in (outcome.right, outcome.weight)]
            if min(side.sum() for side in part[1]) > 0:
                sides = (part[0][0], part[0][1]), (part[1][0], part[1][1])
                single.append(Outcome(*sides, outcome.units, outcome.is_paired).gain[0])
        value, se = outcome.gain
        parts = {"members": members, "non-members": others, "worst column": max(single), "columns": float(columns)}
        return Estimate(value=value, se=se, parts=parts)


def _compare(people: Microdata, original: Microdata, released: Microdata, name: str) -> tuple[Array, Array, Array]:
    """Return the true codes of the people, the released codes (negative: missing), and the weights of the true values."""
    edges = bin_edges(original.numbers(name)) if original.column(name).levels is None else None
    known, true, guess = (_codes(original, file, name, edges) for file in (original, people, released))
    weights = np.zeros(int(max(known.max(initial=0), true.max(initial=0))) + 1)
    weights[known[known >= 0]] = rarity(known)[known >= 0]
    return true, guess, np.where(true >= 0, weights[true], 0.0)


def _chance_and_weight(data: Microdata, name: str) -> Array:
    """Return how likely the value of a random person is right for each record (rows), and the weight of its true value."""
    edges = bin_edges(data.numbers(name)) if data.column(name).levels is None else None
    codes = _codes(data, data, name, edges)
    weight = rarity(codes)
    return np.stack([np.where(codes >= 0, 2.0**-weight, 0.0), weight])


def _codes(original: Microdata, file: Microdata, name: str, edges: Array | None) -> Array:
    """Return the class of each number, or the code of each category in the original; -1 for a missing value."""
    codes = (
        np.searchsorted(edges, file.numbers(name), side="right")
        if edges is not None
        else common_codes(original, file, name)[len(original) :]
    )
    return np.where(file.missing(name), -1, codes.astype(np.int64))
