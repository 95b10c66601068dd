"""Confidence intervals of estimates before and after masking: overlap, width, and conclusions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, PlanError, Undefined
from sdcmap.corrections.formula import Formula, parse_formula, predictors
from sdcmap.kernels.statistics.moments import mean_and_variance
from sdcmap.kernels.statistics.precision import NORMAL_95
from sdcmap.kernels.statistics.regression import Design, Fit, least_squares, logit, products
from sdcmap.utility._numeric import WeightedMeasure, keys_and_numbers, sound_weights

# What a data user estimates: means, proportions and regressions, each with its 95 % interval, before and after masking.


Label = tuple[str, ...]  # what is estimated: ("wage",), ("sex", "male"), or a formula and its term


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


def formula_of(text: str) -> Formula | None:
    """The regression that a text such as "wage ~ age + sex + age:sex" names; None where it cannot be read."""
    try:
        return parse_formula(text)
    except PlanError:
        return None


@dataclass(frozen=True)
class IntervalMeasure(WeightedMeasure):
    """A measure of the 95 % intervals of means, proportions and regression coefficients before and after masking.

    Fields: `on`, variables whose means (numeric) or proportions (others) are estimated, and `models`, regressions.

    Parameters
    ----------
    models : regressions such as "wage ~ age + sex + age:sex"; linear for a numeric response, logistic for one with
        two categories. All coefficients count, the intercept too. A category's effect is relative to the first
        category of the original.
    weighted : survey estimates; needs a weight.
    """

    revision: ClassVar[int] = 2  # 2: a coefficient that is fitted exactly has an interval of no width
    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "left out, in each file on its own; from a regression, records with any of them"

    models: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        for text in self.models:
            if formula_of(text) is None:
                yield f'.models must be texts such as "wage ~ age + sex". Got {text!r}.'

    def _single(self, data: Microdata) -> tuple[str, ...]:
        return self.on or (() if self.models else keys_and_numbers(data))

    def _formulas(self) -> Mapping[str, Formula]:
        return {text: formula for text in self.models if (formula := formula_of(text)) is not None}

    def variables(self, data: Microdata) -> tuple[str, ...]:
        named = (name for formula in self._formulas().values() for name in formula.names)
        return tuple(dict.fromkeys((*self._single(data), *named)))

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for text, formula in self._formulas().items():
            if formula.response in data.schema:
                levels = data.column(formula.response).levels
                if levels is not None and len(levels.drop_nulls()) != 2:
                    yield f"the response of {text!r} must be numeric or have 2 categories."

    def compared(self, original: Microdata, masked: Microdata) -> list[tuple[str, Interval, Interval | None]]:
        """Of each quantity: what it is of, its interval in the original, and in the released file, None where that no
        longer tells it. What the original does not tell is left out."""
        self.check_variables(original)
        before = original.remember(("intervals", self), lambda: self._intervals(original, original))
        used = self.with_weight(masked, *self.variables(masked))
        untouched = masked.base is original and masked.origin is None and masked.changes.keys().isdisjoint(used)
        after = before if untouched else self._intervals(masked, original)
        if not before:
            raise Undefined("none of these means, proportions or regressions can be estimated from the original.")
        return [(label[0], interval, after.get(label)) for label, interval in before.items()]

    def _intervals(self, data: Microdata, original: Microdata) -> dict[Label, Interval]:
        weights = sound_weights(data) if self.weighted else None
        intervals: dict[Label, Interval] = {}
        for name in self._single(original):
            intervals |= _of_variable(data, name, weights)
        for text, formula in self._formulas().items():
            intervals |= _of_regression(data, original, text, formula, weights)
        return intervals


def over_quantities(losses: list[tuple[str, float]], lost: int) -> Estimate:
    """The mean over all quantities; in `parts` the mean of each variable and model, and the share that was lost."""
    parts: dict[str, list[float]] = {}
    for name, loss in losses:
        parts.setdefault(f"on {name}", []).append(loss)
    means = {name: float(np.mean(own)) for name, own in parts.items()} if len(parts) > 1 else {}
    return Estimate(value=float(np.mean([loss for _, loss in losses])), parts=means | {"lost": lost / len(losses)})


def _interval(estimate: float, variance: float) -> Interval:
    reach = NORMAL_95 * float(np.sqrt(max(variance, 0.0)))
    return Interval(float(estimate) - reach, float(estimate) + reach)


def _of_mean(y: Array, weights: Array | None) -> Interval | None:
    """Of the (weighted) mean with variance s^2/n; n = (sum w)^2/sum w^2 (Kish)."""
    mean, variance, count = mean_and_variance(y, weights)
    return None if np.isnan(variance) else _interval(mean, variance / count)


def _of_variable(data: Microdata, name: str, weights: Array | None) -> dict[Label, Interval]:
    """The mean of a numeric variable, or the proportion of each category that occurs."""
    known = ~data.missing(name)
    w = None if weights is None else weights[known]
    levels = data.column(name).levels
    if levels is None:
        intervals: dict[Label, Interval | None] = {(name,): _of_mean(data.numbers(name)[known], w)}
    else:
        codes, texts = data.codes(name)[known], levels.to_list()
        intervals = {(name, str(texts[c])): _of_mean((codes == c).astype(np.float64), w) for c in np.unique(codes)}
    return {label: interval for label, interval in intervals.items() if interval is not None}


def _of_regression(
    data: Microdata, original: Microdata, text: str, formula: Formula, weights: Array | None
) -> dict[Label, Interval]:
    """The coefficients of one regression, linear or (of a response with two categories) logistic."""
    rows = np.flatnonzero(~np.logical_or.reduce([data.missing(name) for name in formula.names]))
    w = None if weights is None else weights[rows]
    if len(rows) == 0 or (w is not None and not w.sum() > 0):
        return {}
    made = predictors(data, formula, rows=rows, original=original)
    known, own = (file.column(formula.response).levels for file in (original, data))
    fit: Fit | None = None
    if known is None and own is None:
        fit = least_squares(made.design, data.numbers(formula.response)[rows], w)
    elif known is not None and own is not None:  # 1: the second of the original's two categories
        answers = np.array([str(level) for level in own])[data.codes(formula.response)[rows]]
        if np.isin(answers, [str(level) for level in known][:2]).all():
            fit = _logit(made.design, (answers == str(known[1])).astype(np.float64), w)
    if fit is None:
        return {}
    spread = np.diag(fit.covariance)
    return {(text, label): _interval(b, v) for label, b, v in zip(made.labels, fit.slopes, spread, strict=True)}


def _logit(design: Design, y: Array, weights: Array | None) -> Fit | None:
    if design.rows <= len(design.terms) or y.min() == y.max():
        return None
    w = np.ones(len(y)) if weights is None else weights
    fitted = logit(design, y * w, (1 - y) * w)
    if fitted is None:
        return None
    fit, p = fitted
    if weights is None:
        return fit
    meat = sum(products(x, (w * (y - p))[at] ** 2) for at, x in design.blocks())
    return Fit(fit.slopes, fit.covariance @ meat @ fit.covariance)


ROUNDING = 1e-9


def overlap(first: Interval, second: Interval) -> float:
    """The mean of what share of each interval lies in the other; 0 where they do not meet.  Karr et al. (2006), eq. 1"""
    low, high = max(first.low, second.low), min(first.high, second.high)
    if high < low - ROUNDING * max(map(abs, (*first, *second))):  # points that are equal but for rounding meet
        return 0.0
    common = max(high - low, 0.0)
    shares = [common / interval.width if interval.width > 0 else 1.0 for interval in (first, second)]
    return sum(shares) / 2


@dataclass(frozen=True)
class IntervalOverlap(IntervalMeasure):
    """How much the 95 % intervals of a user's estimates from the released file overlap those from the original.

    Parameters
    ----------
    on : variables whose mean (numeric) or proportions (others) are estimated; by default, without models, the keys and
        the numeric variables.

    Formula: 1/2 [(u - l)/(U - L) + (u - l)/(U' - L')], (l, u) the intersection of (L, U) and (L', U'); 0 where they do not
    meet; then the mean over all means, proportions and coefficients. `parts`: the mean of each variable and model, and
    "lost", the share that the released file no longer tells (a recoded category, a constant variable), which count as 0.
    Missing values are left out, in each file on its own; from a regression, records with any. Weights: used when
    `weighted`; the variance is s^2/n with n = (sum w)^2/sum w^2, of a regression White's. Households are not used: the
    variance of clusters is not estimated. Works for sampled, recoded and synthetic files. Releasing nothing gives 0.
    Reference: Karr, Kohnen, Oganian, Reiter, Sanil (2006), section 3.2.

    Examples
    --------
    >>> IntervalOverlap(models="wage ~ age + sex").text
    "IntervalOverlap(models='wage ~ age + sex')"
    """

    label: ClassVar[str] = "Confidence interval overlap"
    description: ClassVar[str] = (
        "How far the 95 % confidence intervals of a user's estimates overlap those from the original file."
    )

    unit: ClassVar[str] = "share of the intervals"
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 0.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        compared = self.compared(original, masked)
        overlaps = [(name, 0.0 if after is None else overlap(before, after)) for name, before, after in compared]
        return over_quantities(overlaps, sum(after is None for *_, after in compared))


# Width of confidence intervals.


@dataclass(frozen=True)
class IntervalWidth(IntervalMeasure):
    """How far the width of a user's 95 % intervals is from the original's: wider is less power, narrower false precision.

    Parameters
    ----------
    on : variables whose mean (numeric) or proportions (others) are estimated; by default, without models, the keys and
        the numeric variables.

    Formula: 1 - min(w, w')/max(w, w'), w and w' the widths before and after; the mean over all means, proportions and
    coefficients. A sample of a tenth of the records gives 1 - sqrt(.1). An estimate that had no width in the original is
    not judged. `parts`: the mean of each variable and model; "ratio", the mean of w'/w; and "lost", the share that the
    released file no longer tells, which count as 1.
    Missing values, weights and households as in IntervalOverlap. Works for sampled, recoded and synthetic files; intervals
    are those that a user computes who takes the released file for the original. Releasing nothing gives 1.
    Reference: Hundepool et al. (2012), section 3.5.1; Karr et al. (2006), section 3.2.

    Examples
    --------
    >>> IntervalWidth(on=["wage", "sex"]).text
    "IntervalWidth(on=['wage', 'sex'])"
    """

    label: ClassVar[str] = "Change of interval width"
    description: ClassVar[str] = "How far the width of a user's 95 % confidence intervals differs from the original."

    unit: ClassVar[str] = "share of the width"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 1.0

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        compared = self.compared(original, masked)
        judged = [(name, before.width, after) for name, before, after in compared if before.width > 0]
        if not judged:
            raise Undefined("no estimate from the original has an interval of any width.")
        ratios = [after.width / before for _, before, after in judged if after is not None]
        widths = [(name, before, 0.0 if after is None else after.width) for name, before, after in judged]
        losses = [(name, 1 - min(before, after) / max(before, after)) for name, before, after in widths]
        summary = over_quantities(losses, len(judged) - len(ratios))
        ratio = {"ratio": float(np.mean(ratios))} if ratios else {}
        return Estimate(value=summary.value, parts={**summary.parts, **ratio})


# Conclusions of regressions that a release still gives.


def conclusion(interval: Interval) -> int:
    """1 where the interval lies above 0, -1 where below, 0 where it holds 0."""
    return (interval.low > 0) - (interval.high < 0)


@dataclass(frozen=True)
class SignificanceAgreement(IntervalMeasure):
    """The share of regression coefficients on which the released file and the original lead to the same conclusion.

    Parameters
    ----------
    on : variables whose mean (numeric) or proportions (others) count too; by default none.

    Formula: mean over coefficients of [conclusion is the same]; the conclusion is that of a test at 5 %: above 0, below
        0, or not told from 0. `parts`: each model's, "lost", the share that the released file no longer tells, which
        count as different, "false findings", the share that only the release tells from 0 or with another sign, and
        "missed", the share that only the original does.
    Missing values are left out, in each file on its own; from a regression, records with any. Weights: used when
    `weighted`, with White's variance. Households are not used: the variance of clusters is not estimated. Works for
    sampled, recoded and synthetic files. Releasing nothing gives 0. A sample of the records misses what needs them all:
    that is counted.
    Reference: Barrientos, Bolton, Balmat, Reiter, de Figueiredo, Machanavajjhala, Chen, Kneifel, DeLong (2018), section 5.

    Examples
    --------
    >>> SignificanceAgreement(models="wage ~ age + sex").text
    "SignificanceAgreement(models='wage ~ age + sex')"
    """

    label: ClassVar[str] = "Same conclusions in regressions"
    description: ClassVar[str] = (
        "Share of regression coefficients that lead to the same conclusion as in the original file."
    )

    unit: ClassVar[str] = "share of coefficients"
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 0.0

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if not self.models:
            yield '.models must name at least one regression, such as "wage ~ age + sex".'

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        compared = self.compared(original, masked)
        told = [(conclusion(before), None if after is None else conclusion(after)) for _, before, after in compared]
        same = [(name, float(before == after)) for (name, *_), (before, after) in zip(compared, told, strict=True)]
        summary = over_quantities(same, sum(after is None for _, after in told))
        false = sum(after not in (None, 0, before) for before, after in told) / len(told)
        missed = sum(before != 0 and after == 0 for before, after in told) / len(told)
        return Estimate(value=summary.value, parts={**summary.parts, "false findings": false, "missed": missed})
