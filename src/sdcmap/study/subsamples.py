"""Random subsamples of the original, scored as releases are: what the scores of a release cost, in records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sdcmap.core import (
    Array,
    Choice,
    Estimate,
    Generator,
    Measure,
    Method,
    Microdata,
    PlanError,
    Stream,
    format_percent,
)
from sdcmap.methods import Identity, Sample
from sdcmap.study.cost import estimate_seconds
from sdcmap.study.plan import Plan
from sdcmap.study.scores import Scores
from sdcmap.study.screening_sample import screening_sample
from sdcmap.study.sweep import sweep

# Utility in plain words: which random subsample of the original has the same score.


BAND_RESAMPLES = 200  # of the draws, for the band
MAX_REVERSAL_SE = 3.0  # standard errors by which a step may go the other way before a curve is no curve
MIN_SHARES = 3


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
        share = " ".join(filter(None, (self.beyond, f"{_format_percents(self.thrown)} %")))
        band = "" if self.beyond else f" ({_format_percents(self.low)} to {_format_percents(self.high)} %)"
        told = (
            "share of bias not known"
            if self.bias is None
            else f"about {format_percent(round(self.bias, 2))} of it is bias"
        )
        return f"costs as much as throwing away {share} of {self.records:,} records{band}; {told}"


def _format_percents(thrown: float) -> str:
    """Whole percents, and tenths near both ends, so that 99.9 is not 100.

    >>> _percents(0.382), _format_percents(0.9991), _format_percents(0.004)
    ('38', '99.9', '0.4')
    """
    return f"{100 * thrown:.{1 if min(thrown, 1 - thrown) < 0.0095 else 0}f}"


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
        if len(self.thrown) < MIN_SHARES or not np.isfinite(self.whole):
            return "it has no value for small subsamples, or for the original itself."
        losses = [self._losses(draws) for draws in self.draws]
        means = np.array([own.mean() for own in losses])
        errors = np.array([own.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else 0.0 for own in losses])
        tiny = 1e-12 * max(1.0, abs(self.whole))
        if np.abs(means).max() <= tiny:
            return "leaving records out does not change it."
        steps, allowed = np.diff(means), MAX_REVERSAL_SE * np.hypot(errors[1:], errors[:-1]) + tiny
        rises = means[-1] - means[0] > MAX_REVERSAL_SE * np.hypot(errors[0], errors[-1])
        if (steps < -allowed).any() or (means < -MAX_REVERSAL_SE * errors - tiny).any() or not rises:
            return "leaving records out does not move it one way."
        return ""

    def read(self, scores: Sequence[Estimate], rng: Generator) -> Reading:
        """Return the share that costs as much as these draws of one release do; `rng` resamples for the band."""
        if self.withheld:
            return Reading(self.measure.text, self.records, withheld=self.withheld)
        thrown, beyond = self.share_of(scores)
        if thrown == 0 or beyond:
            return Reading(self.measure.text, self.records, thrown, thrown, thrown, beyond)
        low, high = np.quantile([self._resample_share(scores, rng) for _ in range(BAND_RESAMPLES)], [0.025, 0.975])
        return Reading(self.measure.text, self.records, thrown, min(low, thrown), max(high, thrown))

    def odds_of(self, scores: Sequence[Estimate]) -> float | None:
        """Records thrown away for each that is kept, at the cost of these draws; None where that is not told."""
        thrown, beyond = (0.0, "no curve") if self.withheld else self.share_of(scores)
        return None if beyond else thrown / (1 - thrown)

    def share_of(self, scores: Sequence[Estimate]) -> tuple[float, str]:
        """Return the share itself, and "less than" or "more than" where it lies beyond those that were tried."""
        return self._share_of(self.loss_of(scores), self._typical(self.draws))

    def loss_of(self, draws: Sequence[Estimate]) -> float:
        """Return the loss of several draws of one release."""
        if self.measure.expectation:
            return float(self._losses([self.measure.pool(draws)])[0])
        losses = self._losses(draws)
        return float(np.sqrt(np.mean(losses**2))) * (1.0 if losses.mean() > 0 else 0.0)

    def _losses(self, draws: Sequence[Estimate]) -> Array:
        sign = 1.0 if self.measure.direction == "lower" else -1.0
        return sign * (np.array([draw.value for draw in draws]) - self.whole)

    def _typical(self, draws: Sequence[Sequence[Estimate]]) -> Array:
        return np.array([self.loss_of(of_share) for of_share in draws])

    def _resample_share(self, scores: Sequence[Estimate], rng: Generator) -> float:
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


SUBSAMPLE_SHARES = (
    0.99,
    0.9,
    0.75,
    0.5,
    0.25,
    0.1,
    0.03,
    0.01,
    0.003,
    0.001,
    0.0003,
)  # shares of the records in a subsample
MIN_SUBSAMPLE_RECORDS = 20  # records of the smallest one
DRAWS_PER_SHARE = 20


def subsamples(
    data: Microdata,
    measures: Iterable[Measure],
    *,
    draws: int = DRAWS_PER_SHARE,
    seed: int = 0,
    workers: int | None = 1,
) -> Scores:
    """Return scores of random subsamples of the original, from 99 % of its records down to 0.03 %, and at least 20 of them.

    Households are drawn whole where the file has them. For `as_subsample`, and for `RUMap.draw(subsamples=...)`, which
    draws them as a curve: what lies beyond it costs more, at the same risk, than throwing records away.
    """
    return _sweep_quietly(data, _samples(data), measures, draws, seed, workers)


def estimate_subsample_cost(
    data: Microdata, measures: Iterable[Measure], draws: int = DRAWS_PER_SHARE
) -> tuple[int, float]:
    """Return how many subsamples are scored, and about how many seconds one core needs for that.

    Each costs its share of what the whole file does.
    """
    samples = _samples(data)
    kept = sum(sample.rate or 0.0 for sample in samples)
    return draws * len(samples), draws * kept * estimate_seconds(data, Plan(Identity(), list(measures), 1, seed=0))


def as_subsample(
    data: Microdata, scores: Scores, method: Choice | Method | str, measures: Iterable[Measure] | None = None, *,
    draws: int = DRAWS_PER_SHARE, seed: int = 0,
) -> tuple[Reading, ...]:  # fmt: skip
    """Return every utility score of one method, read as "costs as much as throwing away 38 % of the records".

    Parameters
    ----------
    data : the original.
    scores : of a sweep, with the method among its rows.
    method : the method, its text, or a choice.
    measures : utility measures that were scored; by default all.
    draws : random subsamples of each share, at least 2.
    seed : of the subsamples.

    A reading is withheld, with the reason, where leaving records out does not move a measure one way, as of measures
    that compare each record with its own. Bias stays when a file grows, and costs ever more of its records; what chance
    does costs the same share. So the method is done to a quarter of the people as well, and what the odds (records
    thrown away for each that is kept) have grown by since tells the share of bias. It is not known of a file made
    elsewhere, nor of a score beyond the shares that were tried.
    Price: about 4 times `draws` scores of the whole file a measure (`estimate_subsample_cost`), and `draws` releases of a
    quarter.
    """
    if draws < 2:
        raise PlanError("as_subsample needs at least 2 draws of each share.")
    text = method.method if isinstance(method, Choice) else str(method)
    asked = [m for m in scores.values.values() if m.axis == "utility"] if measures is None else list(measures)
    if any(measure.axis != "utility" for measure in asked):
        raise PlanError("as_subsample reads utility measures: a risk is not the price of anything.")
    stated = {measure: _estimates(scores, measure, text) for measure in asked}
    if not asked:
        return ()
    made = subsamples(data, asked, draws=draws, seed=seed)
    curves = {measure: make_curve(made, measure, len(data)) for measure in asked}
    readings = {measure: _reading(curve, stated[measure], seed) for measure, curve in curves.items()}
    masking, moved = scores.methods.get(text), [measure for measure, reading in readings.items() if reading.thrown]
    if masking is not None and moved:
        part = screening_sample(data, Stream.of_seed(seed, "as_subsample", "quarter").key)
        again = _sweep_quietly(part, [*_samples(part), masking], moved, draws, seed, workers=1)
        for m in moved:
            small = make_curve(again, m, len(part)), _estimates(again, m, text)
            readings[m] = replace(readings[m], bias=_bias_share(curves[m], stated[m], *small))
    return tuple(readings[measure] for measure in asked)


def make_curve(scores: Scores, measure: Measure, records: int) -> SubsampleCurve:
    """Return the curve of one measure, from the scores of subsamples.

    A share without a value for each draw is left out.
    """
    whole = _estimates(scores, measure, Identity().text)
    shares = sorted((thrown, _estimates(scores, measure, text)) for text, thrown in discarded_shares(scores).items())
    most = max((len(draws) for _, draws in shares), default=0)
    told = [(thrown, tuple(draws)) for thrown, draws in shares if len(draws) == most > 1 and _are_finite(draws)]
    value = whole[0].value if whole else float("nan")
    return SubsampleCurve(measure, records, value, tuple(t for t, _ in told), tuple(draws for _, draws in told))


def discarded_shares(scores: Scores) -> dict[str, float]:
    """Return method text -> the share of the records that it leaves out, of the samples among the methods."""
    return {text: 1 - m.rate for text, m in scores.methods.items() if isinstance(m, Sample) and m.rate is not None}


def _samples(data: Microdata) -> list[Sample]:
    kept = [share for share in SUBSAMPLE_SHARES if share * len(data) >= MIN_SUBSAMPLE_RECORDS]
    return [Sample(share, whole_households=data.household is not None) for share in kept]


def _sweep_quietly(
    data: Microdata, methods: Sequence[Method], measures: Iterable[Measure], draws: int, seed: int, workers: int | None
) -> Scores:
    own = int.from_bytes(Stream.of_seed(seed, "subsamples").key, "big")  # no stream of a release
    plan = Plan(methods, list(measures), draws, seed=own)
    return sweep(data, plan, workers=workers, progress=lambda done, total: None)  # no bar


def _are_finite(draws: Iterable[Estimate]) -> bool:
    return all(abs(draw.value) < float("inf") for draw in draws)


def _reading(curve: SubsampleCurve, scored: list[Estimate], seed: int) -> Reading:
    if not scored or not _are_finite(scored):
        return Reading(curve.measure.text, curve.records, withheld="this release has no value of it.")
    return curve.read(scored, Stream.of_seed(seed, "as_subsample", curve.measure.digest).rng())


def _bias_share(
    curve: SubsampleCurve, scored: list[Estimate], small: SubsampleCurve, again: list[Estimate]
) -> float | None:
    """Return what of the odds grows with the file.

    The odds of a bias b and a variance v/n, in units of the variance of one record, are n b^2 + v, those of a quarter
    of the file n b^2/4 + v.
    """
    if not (scored and again and _are_finite(scored) and _are_finite(again)):
        return None
    odds, fewer = curve.odds_of(scored), small.odds_of(again)
    if not odds or fewer is None:
        return None
    return min(1.0, max(0.0, (1 - fewer / odds) / (1 - small.records / curve.records)))


def _estimates(scores: Scores, measure: Measure, method: str) -> list[Estimate]:
    own = scores.column(measure.text).filter(pl.col("method") == method)["id"]
    return [scores.estimates(measure.text)[candidate] for candidate in own]
