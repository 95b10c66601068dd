"""The values of the largest units, estimated by the released values of the same ranks, with these units and without."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, RiskMeasure, Undefined
from sdcmap.core.estimate import quantile
from sdcmap.core.refits import HalfIn, Refit, RefitRequest
from sdcmap.risk._control import NO_CONTROL

MAX_SHARE_OF_UNITS = 0.1  # of the file; smaller files have fewer largest units
PAIRS_AT_RELEASE = 20
CHANCE_HITS = 0.25  # share of the largest values of skewed amounts that are estimated within 10 % by chance (simulated)
JOINT_CONFIDENCE = 0.95  # confidence level of the test that a gain is above 0, for all gains together
SECONDS_PER_VALUE = 2e-7  # to sort the released values


@dataclass(frozen=True)
class LargestRecords:
    """The records with the `largest` values of each amount, with their households, as a choice of `HalfIn`.

    on : the amounts; empty: every numeric variable.
    """

    on: tuple[str, ...]
    largest: int

    def __call__(self, data: Microdata) -> Array:
        names = self.on or data.numeric
        rows = np.unique(np.concatenate([find_largest(data.numbers(name), self.largest) for name in names]))
        if data.household is None:
            unit = np.full(len(data), -1)
            unit[rows] = np.arange(len(rows))
            return unit
        codes = data.codes(data.household).astype(np.int64)
        # a person without a household number is a household of their own
        codes = np.where(data.missing(data.household), codes.max(initial=0) + 1 + np.arange(len(data)), codes)
        chosen = np.unique(codes[rows])
        return np.where(np.isin(codes, chosen), np.searchsorted(chosen, codes), -1)


def find_largest(x: Array, largest: int) -> Array:
    """Return the records with the largest finite values, at most so many and a tenth of the file, largest first.

    >>> find_largest(np.array([3.0, np.nan, 9.0, 5.0] + 16 * [1.0]), 10)
    array([2, 3])
    """
    present = np.flatnonzero(np.isfinite(x))
    count = min(largest, len(present), max(1, math.floor(MAX_SHARE_OF_UNITS * len(x))))
    return np.asarray(present[np.argsort(-x[present], kind="stable")[:count]])


def hits_by_rank(size: Array, rank: Array, released: Array, p: float) -> Array:
    """Return whether each size is within p % of the released value at its rank (0: the largest)."""
    values = np.sort(released[np.isfinite(released)])[::-1]
    at = np.append(values, np.inf)[np.minimum(rank, len(values))]
    return np.asarray(np.abs(at - size) <= p / 100 * np.abs(size), dtype=np.float64)


class Hits(NamedTuple):
    """Whether the attack succeeds on each largest unit of each amount (rows), in each pair of files (columns).

    The unit is in one file of a pair and not in the other.
    """

    with_unit: Array
    without: Array
    amount: Array  # of each row
    rank: Array  # of each row, 0: the largest unit of its amount

    def subset(self, rows: Array) -> Hits:
        return Hits(*(part[rows] for part in self))

    @property
    def gain(self) -> tuple[float, float]:
        """Return the mean gain, and its standard error over the pairs of files; with a single pair, over the units."""
        each = self.with_unit - self.without
        means = each.mean(axis=0) if each.shape[1] > 1 else each[:, 0]
        error = float(np.std(means, ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else 1.0
        # above 0 where all differences are equal
        return float(each.mean()), max(error, math.sqrt(2) / each.size)


@dataclass(frozen=True)
class ExtremeValues(RiskMeasure):
    """How much better the largest values of an amount are estimated because the largest units are in the file.

    The attacker knows who has the largest income, or which firm is the third largest, and takes the released value at that
    rank for theirs. They succeed if it is within p % of the truth. Values of the same rank can also be estimated where the
    unit is not in the file, from the other people; that is statistics, so only the gain from being in the file counts.

    Parameters
    ----------
    on : the amounts; by default all numeric variables.
    largest : how many units of each amount are attacked, at least 1; at most a tenth of the file.
    p : how close is too close, in percent of the true value, above 0.
    times : the number of pairs of refits, at least 2; the release checks make 20.
    control : "refits": the method is run again in pairs, with the same random numbers: one refit has a random half of the
        largest units, its twin the other half, and both have everyone else. "best": for a method whose rows depend on
        their own person alone, the unit's row is removed from the masked file instead.
    method : how the file was made; a sweep and a release fill it in.

    Formula: success with the unit in the file minus success without it, the mean over the units of all amounts; or that of
        a single amount, or of the largest units alone, where it is larger and significant (95 % for all together). Success:
        |released value at rank r - x| <= p/100 |x|, r the number of records in the file whose value is above x, plus 1.
        In a refit half of the largest units are absent, so the next value is further away than if one were absent: the
        gain is rather too high than too low.
    Standard error: over the pairs of refits; without refits over the units.
    `parts`: "members" and "non-members", the success with the unit and without it; "largest units", the gain of the first
        unit of each amount; "worst amount"; "units" and "pairs", how many.
    Missing values have no rank. An amount that was recoded into classes has no released values. Weights are not used: a
    ranking counts units. Households: refits leave out whole households. Releasing nothing gains 0.
    Reference: Cox (1981) for values within p %; the comparison with refits is ours.

    Examples
    --------
    >>> ExtremeValues(on="income", p=5).text
    "ExtremeValues(on='income', p=5.0)"
    """

    label: ClassVar[str] = "Largest values revealed by rank"
    description: ClassVar[str] = (
        "How much more often the largest values are estimated closely because their units are in the file."
    )
    unit: ClassVar[str] = "difference of shares"
    bounds: ClassVar[tuple[float | None, float | None]] = (-1.0, 1.0)
    sampled: ClassVar[bool] = True  # refits are random, and so is which row of an unmasked file is whose
    paired: ClassVar[bool] = False
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)
    missing: ClassVar[str] = "a missing value has no rank"
    households: ClassVar[str] = "units are attacked one by one; refits leave out whole households"
    columns_by_default: ClassVar = "numeric"
    omitted_from_title: ClassVar[tuple[str, ...]] = ("times",)
    can_be_spared: ClassVar[bool] = True
    revision: ClassVar[int] = 2  # 2: few pairs of refits have Student's t distribution

    on: tuple[str, ...] = ()
    largest: Annotated[int, Range(1)] = 10
    p: Annotated[float, Range(0, None, "()")] = 10.0
    times: Annotated[int, Range(2)] = field(default=4, kw_only=True)
    control: Literal["best", "refits"] = field(default="best", kw_only=True)
    method: Method | None = field(default=None, kw_only=True)

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def error_at_baseline(self, data: Microdata, rows: int | None = None) -> float | None:
        """Return the error of the gain if CHANCE_HITS of the values are estimated closely, with their units or without."""
        count = rows or len(data)
        units = len(self.variables(data)) * min(self.largest, max(1, math.floor(MAX_SHARE_OF_UNITS * count)))
        return math.sqrt(2 * CHANCE_HITS * (1 - CHANCE_HITS) / (units * self.times))

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if not any(np.isfinite(data.numbers(name)).any() for name in self.variables(data) if name in data.numeric):
            yield "ExtremeValues needs a numeric variable that has values."

    def seconds(self, data: Microdata) -> float | None:
        return (2 * self.times + self.largest) * len(self.variables(data)) * len(data) * SECONDS_PER_VALUE

    def refits(self, masked: Microdata) -> RefitRequest | None:
        if self.method is None or (self.control == "best" and masked.paired and not self.method.mixes_records):
            return None
        return HalfIn(2 * self.times, LargestRecords(self.on, self.largest), twins=True)

    def release_variant(self) -> Measure:
        return replace(self, control="refits", times=max(self.times, PAIRS_AT_RELEASE))

    def release_error(self, estimate: Estimate) -> float:
        pairs = estimate.parts.get("pairs", 1.0)
        return (estimate.se or 0.0) * math.sqrt(pairs / max(self.times, PAIRS_AT_RELEASE))

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        parts = []
        for index, name in enumerate(self._amounts(original)):
            x = original.numbers(name)
            rows = find_largest(x, self.largest)
            right = np.zeros((len(rows), len(refits)))
            for k, refit in enumerate(refits):
                rank = _ranks(x[~refit.outside], x[rows])
                right[:, k] = hits_by_rank(x[rows], rank, _released(refit.released, name), self.p)
            is_first = np.array([~refit.outside[rows] for refit in refits]).T[:, ::2]
            first, second = right[:, ::2], right[:, 1::2]
            pairs = np.where(is_first, first, second), np.where(is_first, second, first)
            parts.append(Hits(*pairs, np.full(len(rows), index), np.arange(len(rows))))
        return self._estimate(parts)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        if not masked.paired or self.control == "refits" or (self.method is not None and self.method.mixes_records):
            raise Undefined(NO_CONTROL)
        origin = np.arange(len(masked)) if masked.origin is None else masked.origin
        is_released = np.bincount(origin, minlength=len(original)) > 0
        parts = []
        for index, name in enumerate(self._amounts(original)):
            x, y = original.numbers(name), _released(masked, name)
            rows = find_largest(np.where(is_released, x, np.nan), self.largest)
            rank = _ranks(x[is_released], x[rows])
            # the same released file with the unit's row and without it
            without = [hits_by_rank(x[[row]], rank[[i]], y[origin != row], self.p) for i, row in enumerate(rows)]
            pair = hits_by_rank(x[rows], rank, y, self.p)[:, np.newaxis], np.array(without).reshape(-1, 1)
            parts.append(Hits(*pair, np.full(len(rows), index), np.arange(len(rows))))
        return self._estimate(parts)

    def _amounts(self, original: Microdata) -> tuple[str, ...]:
        """Return the amounts that have values."""
        return tuple(n for n in self.check_variables(original) if np.isfinite(original.numbers(n)).any())

    def _estimate(self, parts: Sequence[Hits]) -> Estimate:
        """Return the largest gain: over all amounts and units, or another one that is statistically significant."""
        hits = Hits(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        if not len(hits.rank):
            raise Undefined("no unit with a value was released.")
        first = hits.subset(hits.rank == 0).gain
        amounts = [hits.subset(hits.amount == index).gain for index in np.unique(hits.amount)]
        others = [*amounts, first]
        # Bonferroni: without it, the largest of many gains would be above 0 by chance
        df = hits.with_unit.shape[1] - 1.0 or None
        z = quantile(1 - (1 - JOINT_CONFIDENCE) / len(others), df)
        value, se = max([hits.gain, *((gain, error) for gain, error in others if gain > z * error)])
        rates = {
            "members": float(hits.with_unit.mean()),
            "non-members": float(hits.without.mean()),
            "largest units": first[0],
            "worst amount": max(gain for gain, _ in amounts),
        }
        counts = {"units": float(len(hits.rank)), "pairs": float(hits.with_unit.shape[1])}
        return Estimate(value=value, se=se, df=df, parts=rates | counts)


def _ranks(values: Array, size: Array) -> Array:
    """Return how many of these values are above each size."""
    order = np.sort(values[np.isfinite(values)])
    return np.asarray(len(order) - np.searchsorted(order, size, side="right"))


def _released(masked: Microdata, name: str) -> Array:
    """Return the released values of an amount; none where it was recoded into classes."""
    return masked.numbers(name) if masked.column(name).levels is None else np.full(len(masked), np.nan)
