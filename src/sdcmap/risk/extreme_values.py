"""The values of the largest units, estimated by the released values of the same ranks, with these units and without."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, RiskMeasure, Undefined
from sdcmap.core.refits import HalfIn, Refit, RefitRequest
from sdcmap.risk._control import NO_CONTROL
from sdcmap.risk._outlying_units import (
    MAX_SHARE_OF_LARGEST,
    ExtremeUnits,
    WatchedUnits,
    count_release_refits,
    find_largest,
    signs_of_ends,
)

CHANCE_HITS = 0.25  # share of the largest values of skewed amounts that are estimated within 10 % by chance (simulated)
ERRORS_TO_CHOOSE = 2.0  # the amount counts whose gain plus so many errors is largest
SECONDS_PER_VALUE = 2e-7  # to sort the released values


def hits_by_rank(size: Array, rank: Array, released: Array, p: float) -> Array:
    """Return whether each size is within p % of the released value at its rank (0: the largest)."""
    values = np.sort(released[np.isfinite(released)])[::-1]
    at = np.append(values, np.inf)[np.minimum(rank, len(values))]
    return np.asarray(np.abs(at - size) <= p / 100 * np.abs(size), dtype=np.float64)


class Hits(NamedTuple):
    """Whether the attack succeeds on each extreme unit of an amount (rows) in each file (columns), and which unit is in."""

    success: Array
    inside: Array

    @property
    def rates(self) -> tuple[float, float]:
        """Return the success with the unit in the file and without it; every unit counts equally."""
        with_unit, without = self._means
        return float(with_unit.mean()), float(without.mean())

    @property
    def gain(self) -> tuple[float, float]:
        """Return the difference of the rates, and its standard error over the files; of a single pair, over the units."""
        with_unit, without = self._means
        units, files = self.success.shape
        if files == 2:
            error = float(np.std(with_unit - without, ddof=1)) / math.sqrt(units) if units > 1 else 1.0
        else:
            # what each file adds to the gain, beyond the means of each unit
            means = np.where(self.inside, with_unit[:, np.newaxis], without[:, np.newaxis])
            signs = np.where(self.inside, 1.0, -1.0)
            totals = ((self.success - means) * signs).sum(axis=0) / (units * files / 2)
            error = math.sqrt(files / (files - 2) * float(totals @ totals))
        # above 0 where all differences are equal
        return float((with_unit - without).mean()), max(error, math.sqrt(2) / self.success.size)

    @property
    def _means(self) -> tuple[Array, Array]:
        """The success of each unit over the files that it is in, and over the others."""
        count = np.maximum(self.inside.sum(axis=1), 1), np.maximum((~self.inside).sum(axis=1), 1)
        with_unit, without = (self.success * self.inside).sum(axis=1), (self.success * ~self.inside).sum(axis=1)
        return with_unit / count[0], without / count[1]


@dataclass(frozen=True)
class ExtremeValues(RiskMeasure):
    """How much better the largest values of an amount are estimated because the largest units are in the file.

    The attacker knows who has the largest income, or which firm is the third largest, and takes the released value at that
    rank for theirs. They succeed if it is within p % of the truth. Where an amount has negative values, such as losses, the
    smallest ones are attacked too. Values of the same rank can also be estimated where the unit is not in the file, from
    the other people; that is statistics, so only the gain from being in the file counts.

    Parameters
    ----------
    on : the amounts; by default all numeric variables.
    largest : how many units of each amount, at each end, are attacked, at least 1; at most a tenth of all units. A unit is
        a person with all records, where the file has several of a person, else a household, or a record.
    p : how close is too close, in percent of the true value, above 0.
    times : the number of refits in a sweep, even and at least 4; the release checks make twice as many, from 40 to 100.
    control : "refits": the method is run again without a random half of the largest units and of the outlying people, whom
        `OutlierMembership` attacks in the same refits. "best": for a method whose rows depend on their own person alone,
        the unit's row is removed from the masked file instead.
    amounts : "together": the gains of several amounts are shrunk towards their mean, as far as they differ by chance alone
        (empirical Bayes). This orders candidates, but understates an amount that is the only one to leak. "each": the gain
        of a single amount, as the release checks use it; its upper limit covers the largest gain of all amounts.
    method : how the file was made; a sweep and a release fill it in.

    Formula: success with the unit in the file minus success without it, the mean over the largest units of an amount. The
        amount counts whose gain plus two standard errors is largest; its smallest values count as another amount. Success:
        |released value at rank r - x| <= p/100 |x|, r the number of records in the file whose value is above x, plus 1. In
        a refit half of the largest units are absent, so the next value is further away than if one were absent: the gain is
        rather too high than too low.
    Standard error: over the refits; without refits over the units.
    `parts`: "members" and "non-members", the success with the unit and without it, over all amounts; "worst amount", the
        largest gain, not shrunk; "standard error of one amount", the mean over amounts; "largest units", the gain of the
        first unit of each amount; "units" and "refits".
    Missing values have no rank. An amount that was recoded into classes has no released values. Weights are not used: a
    ranking counts units, each by its largest value. Refits leave out whole units. Releasing nothing gains 0.
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
    households: ClassVar[str] = "the largest value of each household is attacked; refits leave out whole households"
    columns_by_default: ClassVar = "numeric"
    # 2: the refits also lack half of the outlying people, as those of OutlierMembership; 3: units with all their records,
    # and the smallest values of amounts that have negative ones
    revision: ClassVar[int] = 3
    omitted_from_title: ClassVar[tuple[str, ...]] = ("times",)
    can_be_spared: ClassVar[bool] = True

    on: tuple[str, ...] = ()
    largest: Annotated[int, Range(1)] = 10
    p: Annotated[float, Range(0, None, "()")] = 10.0
    times: Annotated[int, Range(4)] = field(default=8, kw_only=True)
    control: Literal["best", "refits"] = field(default="best", kw_only=True)
    amounts: Literal["together", "each"] = field(default="together", kw_only=True)
    method: Method | None = field(default=None, kw_only=True)

    def problems(self) -> Iterator[str]:
        if self.times % 2:
            yield f".times must be even, because each unit is in half of the refits. Got {self.times}."

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def error_at_baseline(self, data: Microdata, rows: int | None = None) -> float | None:
        """Return the error of the gain if CHANCE_HITS of the values are estimated closely, with their units or without."""
        people = data.people * (rows or len(data)) / max(1, len(data))
        units = min(self.largest, max(1, math.floor(MAX_SHARE_OF_LARGEST * people)))
        if self.amounts == "together":
            units *= len(self.variables(data))
        return math.sqrt(4 * CHANCE_HITS * (1 - CHANCE_HITS) / (units * self.times))

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        if not any(np.isfinite(data.numbers(name)).any() for name in self.variables(data) if name in data.numeric):
            yield "ExtremeValues needs a numeric variable that has values."

    def seconds(self, data: Microdata) -> float | None:
        ends = sum(len(signs_of_ends(data.numbers(name))) for name in self.variables(data))
        return (self.times + self.largest) * ends * len(data) * SECONDS_PER_VALUE

    def refits(self, masked: Microdata) -> RefitRequest | None:
        if self.method is None or (self.control == "best" and masked.paired and not self.method.mixes_records):
            return None
        return HalfIn(self.times, WatchedUnits(extreme=ExtremeUnits(self.on, self.largest)))

    def release_variant(self) -> Measure:
        return replace(self, control="refits", amounts="each", times=count_release_refits(self.times))

    def release_error(self, estimate: Estimate) -> float:
        error = estimate.parts["standard error of one amount"]
        return error * math.sqrt(estimate.parts["refits"] / count_release_refits(self.times))

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        parts = []
        for name, sign in self._ends(original):
            x = sign * original.numbers(name)
            rows = find_largest(x, original.units, self.largest)
            inside = np.column_stack([~refit.outside[rows] for refit in refits])
            success = np.column_stack([
                hits_by_rank(x[rows], _ranks(x[~refit.outside], x[rows]), sign * _released(refit.released, name), self.p)
                for refit in refits
            ])  # fmt: skip
            parts.append(Hits(success, inside))
        return self._estimate(parts)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        if not masked.paired or self.control == "refits" or (self.method is not None and self.method.mixes_records):
            raise Undefined(NO_CONTROL)
        origin = np.arange(len(masked)) if masked.origin is None else masked.origin
        is_released, units = np.bincount(origin, minlength=len(original)) > 0, original.units
        parts = []
        for name, sign in self._ends(original):
            x, y = sign * original.numbers(name), sign * _released(masked, name)
            rows = find_largest(np.where(is_released, x, np.nan), units, self.largest)
            rank = _ranks(x[is_released], x[rows])
            # the same released file with the unit's rows and without them
            others = [units[origin] != units[row] for row in rows]
            without = [hits_by_rank(x[[row]], rank[[i]], y[others[i]], self.p)[0] for i, row in enumerate(rows)]
            success = np.column_stack([hits_by_rank(x[rows], rank, y, self.p), np.array(without)])
            parts.append(Hits(success, np.tile([True, False], (len(rows), 1))))
        return self._estimate(parts)

    def _ends(self, original: Microdata) -> Iterator[tuple[str, float]]:
        """Yield each amount that has values, with 1 for its largest ones, and with -1 for its smallest where negative."""
        for name in self.check_variables(original):
            x = original.numbers(name)
            if np.isfinite(x).any():
                yield from ((name, sign) for sign in signs_of_ends(x))

    def _estimate(self, hits: Sequence[Hits]) -> Estimate:
        """Return the gain of the worst amount, from the hits on each end of each amount."""
        hits = [one for one in hits if len(one.success)]
        if not hits:
            raise Undefined("no unit with a value was released.")
        single, single_errors = np.array([one.gain for one in hits]).T
        gains, errors = shrink_gains(single, single_errors) if self.amounts == "together" else (single, single_errors)
        worst = int(np.argmax(gains + ERRORS_TO_CHOOSE * errors))
        files = hits[0].success.shape[1]
        rates = np.mean([one.rates for one in hits], axis=0)
        parts = {
            "members": float(rates[0]), "non-members": float(rates[1]), "worst amount": float(single.max()),
            "standard error of one amount": float(single_errors.mean()),
            "largest units": float(np.mean([Hits(*(part[:1] for part in one)).gain[0] for one in hits])),
            "units": float(sum(len(one.success) for one in hits)), "refits": float(files),
        }  # fmt: skip
        df = files - 1.0 if files > 2 else None
        return Estimate(value=float(gains[worst]), se=float(errors[worst]), df=df, parts=parts)


def shrink_gains(gains: Array, errors: Array) -> tuple[Array, Array]:
    """Return empirical Bayes estimates of gains, and their standard errors.

    Gains that differ by no more than their errors explain become their mean. The largest of many would otherwise be above
    0 by chance. A single gain that is large is shrunk as well, so this serves to order candidates and not to release one.

    >>> shrink_gains(np.array([0.1, 0.2]), np.array([0.1, 0.1]))[0].tolist()
    [0.15000000000000002, 0.15000000000000002]
    """
    mean, count = float(gains.mean()), len(gains)
    mean_error = math.sqrt(float((errors**2).sum())) / count
    if count == 1:
        return gains, errors
    between = max(0.0, float(gains.var(ddof=1)) - float((errors**2).mean()))
    own = between / (between + errors**2)
    return mean + own * (gains - mean), np.hypot(own * errors, (1 - own) * mean_error)


def _ranks(values: Array, size: Array) -> Array:
    """Return how many of these values are above each size."""
    order = np.sort(values[np.isfinite(values)])
    return np.asarray(len(order) - np.searchsorted(order, size, side="right"))


def _released(masked: Microdata, name: str) -> Array:
    """Return the released values of an amount; none where it was recoded into classes."""
    return masked.numbers(name) if masked.column(name).levels is None else np.full(len(masked), np.nan)
