"""Sensitive values that an attacker infers from the nearest released records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from sdcmap.core import Array, Column, Estimate, Generator, Microdata, Range
from sdcmap.core.refits import Refit
from sdcmap.data.cells import common_codes, stack_columns
from sdcmap.kernels.tables.attribution import nearest
from sdcmap.risk._control import (
    Controlled,
    Difference,
    Split,
    Units,
    distance_inputs,
    numeric_ranges,
    recode_by_method,
)
from sdcmap.risk._secrets import SecretMeasure, check_comparable

MIN_PEOPLE_PER_CATEGORY = 20  # in each group; with fewer, a difference of shares is mostly noise
JOINT_CONFIDENCE = 0.95  # confidence level of the test that a gain is above 0, for all gains together


class _EachRefit(NamedTuple):
    """Success in each refit (row) with each person, and the sum of 1/(number of refits) with and without the person."""

    rates: Array
    inverse_counts: Array

    def error_without_gain(self, units: Array, *, certain_only: bool) -> float:
        """Return the standard error of the gain if it made no difference in which refits a person is.

        Then the refits with and without a household are a random choice of all, and the variance between them tells the
        error. That of the observed differences is too small where nobody outside happened to be guessed.
        """
        hits = (self.rates == 1).astype(np.float64) if certain_only else self.rates
        _, unit = np.unique(units, return_inverse=True)
        sums = np.array([np.bincount(unit, row) for row in hits])
        inverse_counts = np.bincount(unit, self.inverse_counts) / np.bincount(unit)
        return math.sqrt(float((sums.var(axis=0, ddof=1) * inverse_counts).sum())) / len(units)


class _Outcome(NamedTuple):
    """Success of an attack on members and non-members, whether it was certain, their secrets, and the naive rate.

    `refits`: both groups are the same people, as members of some of these refits and non-members of the others.
    """

    right: tuple[Array, Array]
    certain: tuple[Array, Array]
    secrets: tuple[Column, Column]
    naive: float
    units: Units
    refits: _EachRefit | None = None

    def gain(self, *, certain_only: bool = False) -> Difference:
        """Return the success rate of members minus that of non-members."""
        members, others = self.certain if certain_only else self.right
        if self.refits is not None:
            return Difference.within_people(members, others, self.units[0])
        return Difference.between_groups(members, others, self.units)

    def tested_gain(self, *, certain_only: bool = False) -> Difference:
        """Return the gain of one of many groups, with an error that also holds where the gain is 0."""
        gain = self.gain(certain_only=certain_only)
        if self.refits is None:
            return gain
        return Difference(
            gain.value, max(gain.se, self.refits.error_without_gain(self.units[0], certain_only=certain_only))
        )

    def subset(self, masks: tuple[Array, Array]) -> _Outcome:
        """Return the outcome for the selected members and non-members only."""
        right, certain, units = ((a[masks[0]], b[masks[1]]) for a, b in (self.right, self.certain, self.units))
        refits = self.refits and _EachRefit(self.refits.rates[:, masks[0]], self.refits.inverse_counts[masks[0]])
        return self._replace(right=right, certain=certain, units=units, refits=refits)


@dataclass(frozen=True)
class AttributeInference(SecretMeasure, Controlled):
    """How much better an attacker infers a sensitive value of members of the release than of non-members.

    The attacker knows some variables of a person, finds the nearest released record on these, and takes its sensitive
    value for the person's. They succeed if it is the same, or close for a number. What they also infer about people
    outside the release is science, not disclosure; only the gain from membership counts.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
    on : the variables the attacker knows, of any kind; by default the keys of the file.
    importance : the weight of each variable of `on` in the distance, above 0, one number each; empty: equal weights.
    tolerance : a number is inferred if the guess is within this share of the true value, at least 0.
    worst : report the largest of several gains: over all people, over certain inferences only, and both in each
        sensitive category. All but the first count only if they are statistically significant.

    Formula: success rate of members minus success rate of non-members, each over at most `targets` people drawn at
        random; Gower's distance: |x - y| / range, at most 1, for numbers, 0 or 1 for categories, times the importance;
        ties give the mean success.
    With refits the value describes the method on these data. The same people are attacked in the refits with and
    without them (with a single refit: different people), so that the two groups do not differ by chance.
    `parts`: "members", "non-members", and "naive", the success of always guessing the most frequent released value
    (median of a number). An attack that does not beat "naive" says nothing about the release. "certain, members" and
    "certain, non-members": the shares where all nearest records have the true value; "worst category": the largest gain
    in a category of the secret with at least 20 people in each group; "refits".
    Significance is tested at 95 % for all gains together, with an error that holds if the refits with and without a
    household were exchanged at random: in a small group the errors of the two rates vary with the rates.
    Missing is a category; people with a missing sensitive value are not attacked. Recoded variables are compared in the
    released categories, labels of several depths (34 and "(30, 40]") at their own depth; undefined if the categories of
    the secret cannot be compared. Weights are not used. Households: persons are attacked one by one; a refit leaves out
    whole households and keeps strata.
    Reference: Giomi, Boenisch, Wehmeyer, Tasnadi (2023).

    Examples
    --------
    >>> AttributeInference("Income", worst=True).text
    "AttributeInference(secret='Income', worst=True)"
    """

    label: ClassVar[str] = "Attribute inference (gain of members)"
    description: ClassVar[str] = (
        "How much more often an attacker infers a sensitive value correctly for people in the file than for "
        "people outside it."
    )

    # 5: labels of several depths, `importance`; 6: the same people as members and non-members of refits; 7: the
    # standard error of shares with ties, by household; 8: people drawn by household
    revision: ClassVar[int] = 8

    secret: str = ""
    on: tuple[str, ...] = ()
    tolerance: Annotated[float, Range(0)] = 0.05
    worst: bool = False
    importance: tuple[float, ...] = ()

    def columns_to_compare(self, data: Microdata) -> tuple[str, ...]:
        return (*self.variables(data), self.secret_in(data))

    def can_be_attacked(self, data: Microdata) -> Array:
        return ~data.missing(self.secret_in(data))

    def read_control_people(self, data: Microdata) -> Microdata | None:
        others = super().read_control_people(data)
        return others and others.take(np.flatnonzero(~others.missing(self.secret_in(data))))

    def error_at_baseline(self, data: Microdata, rows: int | None = None) -> float | None:
        """Return the error of the gain over all people, if the attacker takes the value of a random person for the secret.

        The same people are attacked without and with them: in each round once left out, and in the other refits. A gain in
        one category has a larger error. It counts only if it is significant, so it mostly does not count at the baseline.
        """
        chance = self._chances_of_random_guess(data)
        people = self.count_people(data, rows) * len(chance) / max(1, len(data))
        count = min(self.held_out * people, self.max_people_drawn())
        if count < 1:
            return None
        variance = float((chance * (1 - chance)).mean()) * (1 + 1 / max(1, self.folds - 1)) / self.rounds
        return max(math.sqrt(variance / count), 1 / count)

    def _chances_of_random_guess(self, data: Microdata) -> Array:
        """Return, for each person with a known secret, the share of the people with the same value, or a close number."""
        secret = self.secret_in(data)
        known = ~data.missing(secret)
        if data.column(secret).levels is not None:
            code = data.codes(secret)[known]
            return np.asarray(np.bincount(code)[code] / max(1, len(code)))
        values, width = data.numbers(secret)[known], self.tolerance * np.abs(data.numbers(secret)[known])
        order = np.sort(values)
        close = np.searchsorted(order, values + width, "right") - np.searchsorted(order, values - width, "left")
        return np.asarray(close / max(1, len(values)))

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        if len(refits) == 1:
            return super().score_refits(original, refits, rng)
        names = self.check_variables(original)
        recoded = recode_by_method(original, self.method, self.columns_to_compare(original))
        rows, inside, outside = self.draw_exchangeable_people(refits, self.can_be_attacked(recoded), rng)
        people, ranges = recoded.take(rows), numeric_ranges(recoded, names)
        secret = self.secret_in(recoded)
        success, naive = zip(*(self._success(people, m.released, names, secret, ranges) for m in refits), strict=True)
        rates = np.array(success)  # of each refit (row) with each person; 1 if all nearest records are right
        right, certain = ((_mean_success(hits, inside), _mean_success(hits, outside)) for hits in (rates, rates == 1))
        secrets = (people.column(secret),) * 2
        units = (recoded.units[rows],) * 2
        each = _EachRefit(rates, 1 / inside.sum(axis=0) + 1 / outside.sum(axis=0))
        estimate = self.estimate([_Outcome(right, certain, secrets, float(np.mean(naive)), units, each)])
        return replace(estimate, parts={**estimate.parts, "refits": float(len(refits))})

    def attack(self, split: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> _Outcome:
        secret = self.secret_in(split.members)
        members, naive = self._success(split.members, split.released, names, secret, ranges)
        others, _ = self._success(split.non_members, split.released, names, secret, ranges)
        secrets = split.members.column(secret), split.non_members.column(secret)
        rates = (members, others), (members == 1, others == 1)
        return _Outcome(*rates, secrets, naive, split.units)

    def _success(
        self, people: Microdata, released: Microdata, names: tuple[str, ...], secret: str, ranges: dict[str, float]
    ) -> tuple[Array, float]:
        """Return the success with each of these people, who may come from a file without roles, and the naive rate."""
        check_comparable(people, released, secret)
        truth, guess, tolerance = self._secrets(people, released, secret)
        right = nearest(*distance_inputs(people, released, names, ranges, self.importance), truth, guess, tolerance)[1]
        present = guess[~np.isnan(guess)]
        constant = _constant_guess(present, numeric=tolerance > 0) if len(present) else np.nan
        naive = np.abs(constant - truth) <= tolerance * np.abs(truth)
        return right, float(naive.mean())

    def _secrets(self, people: Microdata, released: Microdata, secret: str) -> tuple[Array, Array, float]:
        """Return true values, released values (NaN: missing) and the tolerance; for categories codes, with tolerance 0."""
        if people.column(secret).levels is None and released.column(secret).levels is None:
            return people.numbers(secret), released.numbers(secret), self.tolerance
        truth, guess = np.split(common_codes(people, released, secret).astype(np.float64), [len(people)])
        return truth, np.where(released.missing(secret), np.nan, guess), 0.0

    def estimate(self, outcomes: Sequence[_Outcome]) -> Estimate:
        [outcome] = outcomes
        parts = {"naive": outcome.naive}
        for prefix, (members, others) in (("", outcome.right), ("certain, ", outcome.certain)):
            parts |= {f"{prefix}members": float(members.mean()), f"{prefix}non-members": float(others.mean())}
        by_category = [outcome.subset(masks) for masks in _category_masks(*outcome.secrets)]
        if by_category:
            parts["worst category"] = max(category.gain().value for category in by_category)
        value, se = _largest_gain(outcome, by_category) if self.worst else outcome.gain()
        return Estimate(value=value, se=se, parts=parts)


def _mean_success(rates: Array, selected: Array) -> Array:
    """Return each person's mean success over the selected refits."""
    return np.asarray(np.average(rates, axis=0, weights=selected))


def _largest_gain(outcome: _Outcome, by_category: Sequence[_Outcome]) -> Difference:
    """Return the largest gain: over all people, or another one that is statistically significant."""
    from scipy.special import ndtri

    others = [category.tested_gain() for category in by_category]
    others += [group.tested_gain(certain_only=True) for group in (outcome, *by_category)]
    # Bonferroni: without it, the largest of many gains would be above 0 by chance
    quantile = float(ndtri(1 - (1 - JOINT_CONFIDENCE) / len(others)))
    significant = [other for other in others if other.value > quantile * other.se]
    return max([outcome.gain(), *significant], key=lambda difference: difference.value)


def _category_masks(members: Column, others: Column) -> list[tuple[Array, Array]]:
    """Return who has each sensitive category, among members and non-members, if enough people of both groups do."""
    if members.levels is None or others.levels is None:
        return []
    member_codes, other_codes = np.split(stack_columns([members, others]).values, [len(members.values)])
    both = [(member_codes == c, other_codes == c) for c in np.intersect1d(member_codes, other_codes)]
    return [(a, b) for a, b in both if min(a.sum(), b.sum()) >= MIN_PEOPLE_PER_CATEGORY]


def _constant_guess(released: Array, *, numeric: bool) -> float:
    """Return the best constant guess: the median of a number, the most frequent category."""
    if numeric:
        return float(np.median(released))
    values, count = np.unique(released, return_counts=True)
    return float(values[count.argmax()])
