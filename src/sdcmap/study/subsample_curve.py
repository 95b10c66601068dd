"""Utility in plain words: which random subsample of the original has the same score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.words import percent
from sdcmap.kernels.arrays import Array

RESAMPLES = 200  # of the draws, for the band
ERRORS = 3.0  # standard errors by which a step may go the other way before a curve is no curve
LEAST_RATES = 3


@dataclass(frozen=True)
class Reading:
    """A score as the share of the records that could as well be thrown away.

    thrown : the share, from 0 to 1; None where it is withheld, and `withheld` says why.
    low, high : its 95 % band: the draws of subsamples and of the release, resampled.
    beyond : "less than" or "more than", where the score lies beyond the smallest or largest share that was tried.
    bias : the share of the cost that grows with the file, because more records do not mend it; None: not known.
    """

    measure: str
    records: int
    thrown: float | None = None
    low: float = 0.0
    high: float = 0.0
    beyond: str = ""
    bias: float | None = None
    withheld: str = ""

    @property
    def text(self) -> str:
        """The reading as a sentence, with its measure.

        >>> Reading("Hellinger", 5000, 0.382, 0.33, 0.427, bias=0.2).text
        'Hellinger: costs as much as throwing away 38 % of 5,000 records (33 to 43 %); about 20 % of it is bias'
        """
        return f"{self.measure}: {self.words}"

    @property
    def words(self) -> str:
        """The reading without its measure."""
        if self.thrown is None:
            return f"no reading: {self.withheld}"
        if self.thrown == 0:
            return f"costs nothing that it sees in {self.records:,} records"
        share = " ".join(filter(None, (self.beyond, _share(self.thrown))))
        band = "" if self.beyond else f" ({_share(self.low).removesuffix(' %')} to {_share(self.high)})"
        told = "share of bias not known" if self.bias is None else f"about {percent(round(self.bias, 2))} of it is bias"
        return f"costs as much as throwing away {share} of {self.records:,} records{band}; {told}"


def _share(thrown: float) -> str:
    """Whole percents, and tenths near both ends, so that 99.9 is not 100.

    >>> _share(0.382), _share(0.9991), _share(0.004)
    ('38 %', '99.9 %', '0.4 %')
    """
    near = min(thrown, 1 - thrown) < 0.0095
    return f"{100 * thrown:.1f} %" if near else f"{100 * thrown:.0f} %"


@dataclass(frozen=True)
class SubsampleCurve:
    """The loss of random subsamples of the original, by the share of the records that was thrown away.

    measure : what was scored; records : how many the original has; whole : the score of the original itself.
    thrown : shares of the records left out, rising; draws : the estimates of the subsamples of each share.

    The loss is the distance of a score from the original's own, in the direction that is worse. That of a share is the
    root of the mean square over its draws (for a measure that is an expectation, that of the pooled draws); between
    shares it is a straight line in log loss and log odds of the share, after isotonic regression. So a mean whose error
    has the variance s^2 (1/m - 1/n) for m of n records is read exactly: a bias of .1 s costs 67 % of 200 records, and
    99.9 % of 100,000.
    """

    measure: Measure
    records: int
    whole: float
    thrown: tuple[float, ...]
    draws: tuple[tuple[Estimate, ...], ...]

    @property
    def withheld(self) -> str:
        """Why no score is read off this curve; empty where one is."""
        if len(self.thrown) < LEAST_RATES or not np.isfinite(self.whole):
            return "it has no value for small subsamples, or for the original itself."
        means, errors = np.array([_mean_and_error(self._losses(draws)) for draws in self.draws]).T
        tiny = 1e-12 * max(1.0, abs(self.whole))
        if np.abs(means).max() <= tiny:
            return "leaving records out does not change it."
        steps, allowed = np.diff(means), ERRORS * np.hypot(errors[1:], errors[:-1]) + tiny
        rises = means[-1] - means[0] > ERRORS * np.hypot(errors[0], errors[-1])
        if (steps < -allowed).any() or (means < -ERRORS * errors - tiny).any() or not rises:
            return "leaving records out does not move it one way."
        return ""

    def read(self, scores: Sequence[Estimate], rng: Generator) -> Reading:
        """The share that costs as much as these draws of one release do; `rng` resamples for the band."""
        if self.withheld:
            return Reading(self.measure.text, self.records, withheld=self.withheld)
        thrown, beyond = self.share_of(scores)
        if thrown == 0 or beyond:
            return Reading(self.measure.text, self.records, thrown, thrown, thrown, beyond)
        again = [self._resampled(scores, rng) for _ in range(RESAMPLES)]
        low, high = np.quantile(again, [0.025, 0.975])
        return Reading(self.measure.text, self.records, thrown, min(low, thrown), max(high, thrown))

    def odds_of(self, scores: Sequence[Estimate]) -> float | None:
        """Records thrown away for each that is kept, at the cost of these draws; None where that is not told."""
        thrown, beyond = (0.0, "no curve") if self.withheld else self.share_of(scores)
        return None if beyond else thrown / (1 - thrown)

    def share_of(self, scores: Sequence[Estimate]) -> tuple[float, str]:
        """The share itself, and "less than" or "more than" where it lies beyond those that were tried."""
        return self._share_of(self.loss_of(scores), self._typical(self.draws))

    def loss_of(self, draws: Sequence[Estimate]) -> float:
        """The loss of several draws of one release."""
        if self.measure.expectation:
            return float(self._losses([self.measure.pool(draws)])[0])
        losses = self._losses(draws)
        return float(np.sqrt(np.mean(losses**2))) * (1.0 if losses.mean() > 0 else 0.0)

    def _losses(self, draws: Sequence[Estimate]) -> Array:
        sign = 1.0 if self.measure.direction == "lower" else -1.0
        return sign * (np.array([draw.value for draw in draws]) - self.whole)

    def _typical(self, draws: Sequence[Sequence[Estimate]]) -> Array:
        return np.array([self.loss_of(of_share) for of_share in draws])

    def _resampled(self, scores: Sequence[Estimate], rng: Generator) -> float:
        def again(draws: Sequence[Estimate]) -> list[Estimate]:
            return [draws[place] for place in rng.integers(0, len(draws), len(draws))]

        return self._share_of(self.loss_of(again(scores)), self._typical([again(draws) for draws in self.draws]))[0]

    def _share_of(self, loss: float, losses: Array) -> tuple[float, str]:
        if loss <= 1e-12 * max(1.0, abs(self.whole)):
            return 0.0, ""
        x, y = self._points(losses)
        at = np.log(loss)
        odds = float(np.exp(np.interp(at, y, x)))
        return odds / (1 + odds), "less than" if at < y[0] else "more than" if at > y[-1] else ""

    def _points(self, losses: Array) -> tuple[Array, Array]:
        """Log odds of the share and log loss, rising."""
        from scipy.optimize import isotonic_regression

        thrown = np.array(self.thrown)
        y = np.log(np.maximum(isotonic_regression(losses).x, 1e-300))
        return np.log(thrown / (1 - thrown)), y + 1e-12 * np.arange(len(y))  # strictly, for `np.interp`


def _mean_and_error(losses: Array) -> tuple[float, float]:
    error = float(losses.std(ddof=1)) / np.sqrt(len(losses)) if len(losses) > 1 else 0.0
    return float(losses.mean()), float(error)
