"""Random subsamples of the original, scored like releases: they express the utility loss of a release in records."""

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

BAND_RESAMPLES = 200  # bootstrap samples of the draws, for the 95 % band
MAX_REVERSAL_SE = 3.0  # standard errors; a larger step in the wrong direction means that there is no curve
MIN_SHARES = 3  # points of a curve


@dataclass(frozen=True)
class Reading:
    """A score as the share of the records that could be discarded at the same loss.

    thrown : the share, from 0 to 1; None where it is withheld, and `withheld` says why.
    low, high : its 95 % band, from resampling the draws of subsamples and of the release.
    beyond : "less than" or "more than", where the score is outside the range of the shares that were tried.
    bias : the share of the loss that more records would not reduce; None: not known.
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
        bias = (
            "share of bias not known"
            if self.bias is None
            else f"about {format_percent(round(self.bias, 2))} of it is bias"
        )
        return f"costs as much as throwing away {share} of {self.records:,} records{band}; {bias}"


def _format_percents(thrown: float) -> str:
    """Return whole percents, with tenths near both ends, so that 99.9 does not become 100.

    >>> _format_percents(0.382), _format_percents(0.9991), _format_percents(0.004)
    ('38', '99.9', '0.4')
    """
    return f"{100 * thrown:.{1 if min(thrown, 1 - thrown) < 0.0095 else 0}f}"


@dataclass(frozen=True)
class SubsampleCurve:
    """The loss of random subsamples of the original, by the share of the records that was discarded.

    measure : what was scored; records : how many the original has; whole : the score of the original itself.
    thrown : shares of the records left out, increasing; draws : the estimates of the subsamples of each share.

    The loss is the distance of a score from that of the original, in the direction that is worse. The loss of a share is
    the root of the mean square over its draws (for a measure that is an expectation, the loss of the pooled draws). Between
    shares it is linear in log loss and log odds of the share, after isotonic regression. A mean whose error has the
    variance s^2 (1/m - 1/n) for m of n records is therefore read exactly: a bias of 0.1 s costs 67 % of 200 records, and
    99.9 % of 100,000.
    """

    measure: Measure
    records: int
    whole: float
    thrown: tuple[float, ...]
    draws: tuple[tuple[Estimate, ...], ...]

    @property
    def withheld(self) -> str:
        """Why no score is read from this curve; empty where scores are read."""
        if len(self.thrown) < MIN_SHARES or not np.isfinite(self.whole):
            return "it has no value for small subsamples, or for the original itself."
        losses = [self._losses(draws) for draws in self.draws]
        means = np.array([own.mean() for own in losses])
        errors = np.array([own.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else 0.0 for own in losses])
        tiny = 1e-12 * max(1.0, abs(self.whole))
        if np.abs(means).max() <= tiny:
            return "leaving records out does not change it."
        # a share can be read only if the loss increases with it, apart from random error
        steps, allowed = np.diff(means), MAX_REVERSAL_SE * np.hypot(errors[1:], errors[:-1]) + tiny
        rises = means[-1] - means[0] > MAX_REVERSAL_SE * np.hypot(errors[0], errors[-1])
        if (steps < -allowed).any() or (means < -MAX_REVERSAL_SE * errors - tiny).any() or not rises:
            return "leaving records out does not move it one way."
        return ""

    def read(self, scores: Sequence[Estimate], rng: Generator) -> Reading:
        """Return the share with the same loss as these draws of one release. `rng` resamples for the band."""
        if self.withheld:
            return Reading(self.measure.text, self.records, withheld=self.withheld)
        thrown, beyond = self.share_of(scores)
        if thrown == 0 or beyond:
            return Reading(self.measure.text, self.records, thrown, thrown, thrown, beyond)
        low, high = np.quantile([self._resample_share(scores, rng) for _ in range(BAND_RESAMPLES)], [0.025, 0.975])
        return Reading(self.measure.text, self.records, thrown, min(low, thrown), max(high, thrown))

    def odds_of(self, scores: Sequence[Estimate]) -> float | None:
        """Return records discarded for each one kept, at the loss of these draws; None where it is unknown."""
        thrown, beyond = (0.0, "no curve") if self.withheld else self.share_of(scores)
        return None if beyond else thrown / (1 - thrown)

    def share_of(self, scores: Sequence[Estimate]) -> tuple[float, str]:
        """Return the share, and "less than" or "more than" where it is outside the shares that were tried."""
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
            return [draws[index] for index in rng.integers(0, len(draws), len(draws))]

        return self._share_of(self.loss_of(again(scores)), self._typical([again(draws) for draws in self.draws]))[0]

    def _share_of(self, loss: float, losses: Array) -> tuple[float, str]:
        if loss <= 1e-12 * max(1.0, abs(self.whole)):
            return 0.0, ""
        # The squared error of a mean is proportional to the odds of the discarded share, so the curve is a straight
        # line in log odds and log loss, and interpolation there is exact.
        x, y = self._points(losses)
        log_loss = np.log(loss)
        odds = float(np.exp(np.interp(log_loss, y, x)))
        return odds / (1 + odds), "less than" if log_loss < y[0] else "more than" if log_loss > y[-1] else ""

    def _points(self, losses: Array) -> tuple[Array, Array]:
        """Return log odds of the share and log loss, both increasing."""
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
MIN_SUBSAMPLE_RECORDS = 20  # in smaller subsamples most measures have no value
DRAWS_PER_SHARE = 20  # a standard error of the mean loss of about a fifth of its spread


def subsamples(
    data: Microdata,
    measures: Iterable[Measure],
    *,
    draws: int = DRAWS_PER_SHARE,
    seed: int = 0,
    workers: int | None = 1,
) -> Scores:
    """Return scores of random subsamples of the original, from 99 % of its records down to 0.03 %, at least 20 records.

    Households are drawn whole where the file has them. `as_subsample` uses them, and `RUMap.draw(subsamples=...)` draws
    them as a curve: a release beyond it costs more, at the same risk, than discarding records.
    """
    return _sweep_quietly(data, _samples(data), measures, draws, seed, workers)


def estimate_subsample_cost(
    data: Microdata, measures: Iterable[Measure], draws: int = DRAWS_PER_SHARE
) -> tuple[int, float]:
    """Return how many subsamples are scored, and about how many seconds one core needs.

    Each costs its share of what the whole file does.
    """
    samples = _samples(data)
    kept = sum(sample.rate or 0.0 for sample in samples)
    return draws * len(samples), draws * kept * estimate_seconds(data, Plan(Identity(), list(measures), 1, seed=0))


def as_subsample(
    data: Microdata, scores: Scores, method: Choice | Method | str, measures: Iterable[Measure] | None = None, *,
    draws: int = DRAWS_PER_SHARE, seed: int = 0,
) -> tuple[Reading, ...]:  # fmt: skip
    """Read every utility score of one method as "costs as much as throwing away 38 % of the records".

    Parameters
    ----------
    data : the original.
    scores : of a sweep, with the method among its rows.
    method : the method, its text, or a choice.
    measures : utility measures that were scored; by default all.
    draws : random subsamples of each share, at least 2.
    seed : of the subsamples.

    A reading is withheld, with the reason, where discarding records does not change a measure in one direction, as for
    measures that compare each record with its own original. A bias stays when a file grows, and costs ever more of its
    records; random error always costs the same share. The method is therefore also applied to a quarter of the people, and
    the growth of the odds (records discarded for each one kept) gives the share of bias. It is unknown for a file made
    elsewhere, and for a score outside the shares that were tried.
    Cost: about 4 times `draws` scores of the whole file per measure (`estimate_subsample_cost`), and `draws` releases of a
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
    # the share of bias: apply the method to a quarter of the people and compare the odds
    masking, moved = scores.methods.get(text), [measure for measure, reading in readings.items() if reading.thrown]
    if masking is not None and moved:
        part = screening_sample(data, Stream.of_seed(seed, "as_subsample", "quarter").key)
        again = _sweep_quietly(part, [*_samples(part), masking], moved, draws, seed, workers=1)
        for m in moved:
            small = make_curve(again, m, len(part)), _estimates(again, m, text)
            readings[m] = replace(readings[m], bias=_bias_share(curves[m], stated[m], *small))
    return tuple(readings[measure] for measure in asked)


def make_curve(scores: Scores, measure: Measure, records: int) -> SubsampleCurve:
    """Return the curve of one measure from the scores of subsamples. A share without a value for each draw is left out."""
    whole = _estimates(scores, measure, Identity().text)
    shares = sorted((thrown, _estimates(scores, measure, text)) for text, thrown in discarded_shares(scores).items())
    most = max((len(draws) for _, draws in shares), default=0)
    complete = [(thrown, tuple(draws)) for thrown, draws in shares if len(draws) == most > 1 and _are_finite(draws)]
    value = whole[0].value if whole else float("nan")
    return SubsampleCurve(measure, records, value, tuple(t for t, _ in complete), tuple(d for _, d in complete))


def discarded_shares(scores: Scores) -> dict[str, float]:
    """Return method text -> the share of the records that it leaves out, for the samples among the methods."""
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
    """Return the share of the odds that grows with the file.

    For a bias b and a variance v/n, in units of the variance of one record, the odds are n b^2 + v; for a quarter of the
    file they are n b^2/4 + v.
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
