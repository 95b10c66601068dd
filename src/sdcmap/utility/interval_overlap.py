"""Confidence intervals of estimates before and after masking: overlap, width, and conclusions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, PlanError, Undefined
from sdcmap.core.formula import Formula, parse_formula
from sdcmap.corrections.formula_columns import build_predictors
from sdcmap.kernels.statistics.moments import mean_and_variance
from sdcmap.kernels.statistics.precision import NORMAL_95
from sdcmap.kernels.statistics.regression import Design, Fit, least_squares, logit, products
from sdcmap.utility._numeric import WeightedMeasure, check_weights, keys_and_numbers

# Estimates of a data user: means, proportions and regressions, each with its 95 % interval, before and after masking.


Label = tuple[str, ...]  # of a quantity: ("wage",), ("sex", "male"), or a formula and its term


class Interval(NamedTuple):
    """A 95 % confidence interval."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The length of the interval."""
        return self.high - self.low


def try_parse_formula(text: str) -> Formula | None:
    """Parse a regression such as "wage ~ age + sex + age:sex"; return None if it is not valid."""
    try:
        return parse_formula(text)
    except PlanError:
        return None


@dataclass(frozen=True)
class IntervalMeasure(WeightedMeasure):
    """Base of the measures of 95 % confidence intervals of means, proportions and regression coefficients.

    Parameters
    ----------
    models : regressions such as "wage ~ age + sex + age:sex"; linear for a numeric response, logistic for one with two
        categories. All coefficients count, including the intercept. A category's effect is relative to the first
        category of the original.
    weighted : survey estimates; needs a weight.
    """

    revision: ClassVar[int] = 2  # 2: a coefficient that fits exactly has an interval of width 0
    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "left out, in each file separately; from a regression, records with any of them"

    models: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        for text in self.models:
            if try_parse_formula(text) is None:
                yield f'.models must be texts such as "wage ~ age + sex". Got {text!r}.'

    def _single_variables(self, data: Microdata) -> tuple[str, ...]:
        """Return the variables whose mean or proportions are estimated."""
        return self.on or (() if self.models else keys_and_numbers(data))

    def _formulas(self) -> Mapping[str, Formula]:
        """Return the parsed regressions by their text."""
        return {text: formula for text in self.models if (formula := try_parse_formula(text)) is not None}

    def variables(self, data: Microdata) -> tuple[str, ...]:
        named = (name for formula in self._formulas().values() for name in formula.names)
        return tuple(dict.fromkeys((*self._single_variables(data), *named)))

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        for text, formula in self._formulas().items():
            if formula.response in data.schema:
                levels = data.column(formula.response).levels
                if levels is not None and len(levels.drop_nulls()) != 2:
                    yield f"the response of {text!r} must be numeric or have 2 categories."

    def compare_intervals(self, original: Microdata, masked: Microdata) -> list[tuple[str, Interval, Interval | None]]:
        """Return, for each quantity, its variable or model, its interval in the original, and that in the released file.

        The last is None if it cannot be estimated from the released file. Quantities that cannot be estimated from the
        original are left out.
        """
        self.check_variables(original)
        before = original.remember(("intervals", self), lambda: self._intervals(original, original))
        used = self.with_weight(masked, *self.variables(masked))
        untouched = masked.base is original and masked.origin is None and masked.changes.keys().isdisjoint(used)
        after = before if untouched else self._intervals(masked, original)
        if not before:
            raise Undefined("none of these means, proportions or regressions can be estimated from the original.")
        return [(label[0], interval, after.get(label)) for label, interval in before.items()]

    def _intervals(self, data: Microdata, original: Microdata) -> dict[Label, Interval]:
        """Return the intervals of all quantities in one file."""
        weights = check_weights(data) if self.weighted else None
        intervals: dict[Label, Interval] = {}
        for name in self._single_variables(original):
            intervals |= _variable_intervals(data, name, weights)
        for text, formula in self._formulas().items():
            intervals |= _regression_intervals(data, original, text, formula, weights)
        return intervals


def summarize_quantities(losses: list[tuple[str, float]], lost: int) -> Estimate:
    """Return the mean over all quantities; `parts` has the mean of each variable and model, and the share lost."""
    parts: dict[str, list[float]] = {}
    for name, loss in losses:
        parts.setdefault(f"on {name}", []).append(loss)
    means = {name: float(np.mean(own)) for name, own in parts.items()} if len(parts) > 1 else {}
    return Estimate(value=float(np.mean([loss for _, loss in losses])), parts=means | {"lost": lost / len(losses)})


def _interval(estimate: float, variance: float) -> Interval:
    """Return the normal 95 % interval."""
    reach = NORMAL_95 * float(np.sqrt(max(variance, 0.0)))
    return Interval(float(estimate) - reach, float(estimate) + reach)


def _mean_interval(y: Array, weights: Array | None) -> Interval | None:
    """Return the interval of the (weighted) mean with variance s^2/n; n = (sum w)^2/sum w^2 (Kish)."""
    mean, variance, count = mean_and_variance(y, weights)
    return None if np.isnan(variance) else _interval(mean, variance / count)


def _variable_intervals(data: Microdata, name: str, weights: Array | None) -> dict[Label, Interval]:
    """Return the interval of the mean of a numeric variable, or of the proportion of each category that occurs."""
    known = ~data.missing(name)
    w = None if weights is None else weights[known]
    levels = data.column(name).levels
    if levels is None:
        intervals: dict[Label, Interval | None] = {(name,): _mean_interval(data.numbers(name)[known], w)}
    else:
        codes, texts = data.codes(name)[known], levels.to_list()
        intervals = {
            (name, str(texts[c])): _mean_interval((codes == c).astype(np.float64), w) for c in np.unique(codes)
        }
    return {label: interval for label, interval in intervals.items() if interval is not None}


def _regression_intervals(
    data: Microdata, original: Microdata, text: str, formula: Formula, weights: Array | None
) -> dict[Label, Interval]:
    """Return the intervals of the coefficients of one regression: logistic for a response with two categories."""
    rows = np.flatnonzero(~np.logical_or.reduce([data.missing(name) for name in formula.names]))
    w = None if weights is None else weights[rows]
    if len(rows) == 0 or (w is not None and not w.sum() > 0):
        return {}
    terms = build_predictors(data, formula, rows=rows, original=original)
    known, own = (file.column(formula.response).levels for file in (original, data))
    fit: Fit | None = None
    if known is None and own is None:
        fit = least_squares(terms.design, data.numbers(formula.response)[rows], w)
    elif known is not None and own is not None:  # 1 is the second of the original's two categories
        answers = np.array([str(level) for level in own])[data.codes(formula.response)[rows]]
        if np.isin(answers, [str(level) for level in known][:2]).all():
            fit = _logit(terms.design, (answers == str(known[1])).astype(np.float64), w)
    if fit is None:
        return {}
    variances = np.diag(fit.covariance)
    return {(text, label): _interval(b, v) for label, b, v in zip(terms.labels, fit.slopes, variances, strict=True)}


def _logit(design: Design, y: Array, weights: Array | None) -> Fit | None:
    """Fit a logistic regression; with weights, use White's sandwich covariance."""
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


TOUCH_TOLERANCE = 1e-9  # relative; intervals of width 0 that are equal except for rounding touch


def overlap(first: Interval, second: Interval) -> float:
    """Return the mean share of each interval that lies in the other; 0 if they do not touch.

    Karr et al. (2006), eq. 1
    """
    low, high = max(first.low, second.low), min(first.high, second.high)
    if high < low - TOUCH_TOLERANCE * max(map(abs, (*first, *second))):
        return 0.0
    common = max(high - low, 0.0)
    shares = [common / interval.width if interval.width > 0 else 1.0 for interval in (first, second)]
    return sum(shares) / 2


@dataclass(frozen=True)
class IntervalOverlap(IntervalMeasure):
    """How far the 95 % confidence intervals of a user's estimates overlap those from the original.

    Parameters
    ----------
    on : variables whose mean (numeric) or proportions (others) are estimated; by default, without models, the keys and
        the numeric variables.

    Formula: 1/2 [(u - l)/(U - L) + (u - l)/(U' - L')], (l, u) the intersection of (L, U) and (L', U'); 0 if they do not
        touch; then the mean over all means, proportions and coefficients. `parts`: the mean of each variable and model,
        and "lost", the share that cannot be estimated from the released file (a recoded category, a constant variable),
        which count as 0.
    Missing values are left out, in each file separately; from a regression, records with any. Weights: used when
    `weighted`; the variance is s^2/n with n = (sum w)^2/sum w^2, White's for a regression. Households are not used:
    clustering is ignored in the variance. Works for sampled, recoded and synthetic files.
    Releasing nothing gives 0.
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
        compared = self.compare_intervals(original, masked)
        overlaps = [(name, 0.0 if after is None else overlap(before, after)) for name, before, after in compared]
        return summarize_quantities(overlaps, sum(after is None for *_, after in compared))


# Width of confidence intervals.


@dataclass(frozen=True)
class IntervalWidth(IntervalMeasure):
    """How far the width of a user's 95 % confidence intervals differs from the original.

    Wider intervals mean less power, narrower ones false precision.

    Parameters
    ----------
    on : variables whose mean (numeric) or proportions (others) are estimated; by default, without models, the keys and
        the numeric variables.

    Formula: 1 - min(w, w')/max(w, w'), w and w' the widths before and after; the mean over all means, proportions and
        coefficients. A 10 % sample of the records gives 1 - sqrt(0.1). Estimates without width in the original are left
        out. `parts`: the mean of each variable and model; "ratio", the mean of w'/w; and "lost", the share that cannot
        be estimated from the released file, which count as 1.
    Missing values, weights and households as in IntervalOverlap. Works for sampled, recoded and synthetic files;
    intervals are those of a user who takes the released file for the original.
    Releasing nothing gives 1.
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
        compared = self.compare_intervals(original, masked)
        usable = [(name, before.width, after) for name, before, after in compared if before.width > 0]
        if not usable:
            raise Undefined("every estimate from the original has an interval of width 0.")
        ratios = [after.width / before for _, before, after in usable if after is not None]
        widths = [(name, before, 0.0 if after is None else after.width) for name, before, after in usable]
        losses = [(name, 1 - min(before, after) / max(before, after)) for name, before, after in widths]
        summary = summarize_quantities(losses, len(usable) - len(ratios))
        ratio = {"ratio": float(np.mean(ratios))} if ratios else {}
        return Estimate(value=summary.value, parts={**summary.parts, **ratio})


# Conclusions of regressions.


def conclusion(interval: Interval) -> int:
    """Return 1 if the interval lies above 0, -1 if below, and 0 if it contains 0."""
    return (interval.low > 0) - (interval.high < 0)


@dataclass(frozen=True)
class SignificanceAgreement(IntervalMeasure):
    """Share of regression coefficients on which the released file and the original lead to the same conclusion.

    Parameters
    ----------
    on : variables whose mean (numeric) or proportions (others) count too; by default none.

    Formula: mean over coefficients of [same conclusion]; the conclusion is that of a test at 5 %: above 0, below 0, or
        not significant. `parts`: each model; "lost", the share that cannot be estimated from the released file, which
        count as different; "false findings", the share that is significant only in the release, or with another sign;
        and "missed", the share that is significant only in the original.
    Missing values are left out, in each file separately; from a regression, records with any. Weights: used when
    `weighted`, with White's variance. Households are not used: clustering is ignored in the variance. Works for
    sampled, recoded and synthetic files. Findings that a sample is too small to show count as missed.
    Releasing nothing gives 0.
    Reference: Barrientos, Bolton, Balmat, Reiter, de Figueiredo, Machanavajjhala, Chen, Kneifel, DeLong (2018), section
    5.

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
        compared = self.compare_intervals(original, masked)
        pairs = [(conclusion(before), None if after is None else conclusion(after)) for _, before, after in compared]
        same = [(name, float(before == after)) for (name, *_), (before, after) in zip(compared, pairs, strict=True)]
        summary = summarize_quantities(same, sum(after is None for _, after in pairs))
        false = sum(after not in (None, 0, before) for before, after in pairs) / len(pairs)
        missed = sum(before != 0 and after == 0 for before, after in pairs) / len(pairs)
        return Estimate(value=summary.value, parts={**summary.parts, "false findings": false, "missed": missed})
