"""Estimates: a number with its uncertainty, its parts, upper bounds and skipped attacks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.kernels.statistics.precision import wilson_interval

DETAILS_VERSION = 1  # of the JSON in the column `details` of the score table


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """The most that an unfinished attack could have reached."""

    attack: str
    estimate: Estimate


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """An attack, or a part of one, that could not be run, and why."""

    attack: str
    reason: str

    def __str__(self) -> str:
        return f"{self.attack}: {self.reason.rstrip('.')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SampledShare:
    """The sampling behind a value that is `scale` times the largest of several shares, each of `trials` sampled records."""

    trials: int
    comparisons: int = 1
    scale: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawSpread:
    """The values of several draws of one method: their mean, their standard deviation, and how many there are."""

    mean: float
    sd: float
    draws: int

    @staticmethod
    def of_values(values: Sequence[float]) -> DrawSpread | None:
        """Return the spread of at least two finite values; None for fewer.

        >>> DrawSpread.of_values([0.1, 0.3])
        DrawSpread(mean=0.2, sd=0.1414213562373095, draws=2)
        """
        count = len(values)
        if count < 2 or not all(map(math.isfinite, values)):
            return None
        mean = math.fsum(values) / count
        return DrawSpread(
            mean=mean, sd=math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (count - 1)), draws=count
        )

    @property
    def prediction_error(self) -> float:
        """The standard error of the mean as a prediction of one more draw."""
        return self.sd * math.sqrt(1 + 1 / self.draws)


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A number with its uncertainty and its details.

    Parameters
    ----------
    value : the number.
    se : its standard error; None: it is exact for this file; infinite: nothing is known about its error.
    df : degrees of freedom of the standard error; None: the error is taken as normal.
    share : set where the value is a share of sampled records; its interval is then Wilson's.
    reciprocal : the value is 1 over an estimated mean squared error; its interval is then 1 over that of the error.
    parts : additive parts and other figures, by name.
    bounds : upper bounds for attacks that were not run, or only in part.
    skipped : attacks that did not apply, with the reason.
    spread : of a value that is exact for one file, the values of several draws of its method; the score table does not
        contain it.
    """

    value: float
    se: float | None = None
    df: float | None = None
    share: SampledShare | None = None
    reciprocal: bool = False
    parts: Mapping[str, float] = field(default_factory=dict, hash=False)
    bounds: tuple[Bound, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    spread: DrawSpread | None = None

    def upper(self, level: float) -> float:
        """Return the one-sided upper confidence limit at this level, at least as large as every bound."""
        if self.reciprocal and self.se:
            end = reciprocal_upper(self.value, self.se, quantile(level, self.df))
        elif self.share is not None:
            end = wilson_upper(self.value, self.share, level)
        else:
            end = self.value + self._margin(level)
        return max(end, self.value, *(bound.estimate.upper(level) for bound in self.bounds))

    def lower(self, level: float) -> float:
        """Return the one-sided lower confidence limit at this level."""
        if self.reciprocal and self.se:
            return reciprocal_lower(self.value, self.se, level)
        return self.value - self._margin(level)

    def eligibility_limit(self, release_se: float, policy: ReleasePolicy, *, is_upper: bool = True) -> float:
        """Return the value with a margin, such that a file within its limits by the margin will mostly pass its release.

        It is value + z_release * release_se + z_study * sqrt(se^2 + release_se^2): the second term predicts what a release
        measures at most, given the error of the study, and the first is the margin that the release itself needs. For a
        share both steps use Wilson's interval, for 1 over a mean squared error that of the error. It is 0 margins above
        the value where both errors are 0, and at least as large as every bound.

        A release is another draw of the method. Where the value is exact for one file, s_study is therefore the error of
        the mean of several draws as a prediction of the next one, and this mean replaces a value that is better.

        release_se : the standard error that the measurement at release will have. is_upper : whether values must stay below
        their limit; otherwise the margin is subtracted.
        """
        end = self._with_margin(release_se, policy, is_upper)
        if not is_upper:
            return end
        bounds = (b.estimate.eligibility_limit(b.estimate.se or 0.0, policy) for b in self.bounds)
        return max(end, self.value, *bounds)

    def _with_margin(self, release_se: float, policy: ReleasePolicy, is_upper: bool) -> float:
        se, value = self.se or 0.0, self.value
        if self.share is not None and is_upper:
            return _wilson_margin(value, self.share, se, release_se, policy)
        if not (se or release_se or self.spread) or not math.isfinite(value):
            return value
        z_study, z_release = (_t_multiple(z, self.df) for z in (policy.z_study, policy.z_release))
        if self.spread is not None and self.share is None and not self.reciprocal:
            value = max(value, self.spread.mean) if is_upper else min(value, self.spread.mean)
            se, z_study = self.spread.prediction_error, _t_multiple(policy.z_study, self.spread.draws - 1.0)
        margin = z_release * release_se + z_study * math.hypot(se, release_se)
        if not self.reciprocal:
            return value + margin if is_upper else value - margin
        if is_upper:
            return reciprocal_upper(value, margin, 1.0)
        predicted = reciprocal_lower(value, math.hypot(se, release_se), _normal_level(z_study))
        if predicted == 0:
            return 0.0
        return reciprocal_lower(predicted, release_se * predicted / value, _normal_level(z_release))

    def interval(self, level: float) -> tuple[float, float] | None:
        """Return the two-sided confidence interval at this level; None where the value is exact."""
        side = (1 + level) / 2
        return (self.lower(side), self.upper(side)) if self.se or self.share is not None else None

    def _margin(self, level: float) -> float:
        return quantile(level, self.df) * self.se if self.se else 0.0

    # ---- the score table --------------------------------------------------------------------------------------
    def to_details(self) -> str:
        """Return everything but value and standard error as JSON, without fields at their defaults."""
        more: dict[str, Any] = {} if self.df is None else {"df": self.df}
        if self.share is not None:
            more["share"] = [self.share.trials, self.share.comparisons, self.share.scale]
        if self.reciprocal:
            more["reciprocal"] = True
        if self.bounds:
            more["bounds"] = [[b.attack, b.estimate.value, b.estimate.se, b.estimate.to_details()] for b in self.bounds]
        if self.skipped:
            more["skipped"] = [[s.attack, s.reason] for s in self.skipped]
        rest = f", {json.dumps(more)[1:-1]}" if more else ""
        return f'{{"version": {DETAILS_VERSION}, "parts": {_parts_json(self.parts)}{rest}}}'

    @classmethod
    def from_details(cls, value: float, se: float | None, details: str | Mapping[str, Any]) -> Estimate:
        """Return the estimate of a row of the score table."""
        table = json.loads(details) if isinstance(details, str) else details
        if len(table) == 2:  # most estimates have only a version and parts, and a study has thousands of them
            return cls(value=value, se=se, parts=table["parts"])
        sampled = dict(zip(("trials", "comparisons", "scale"), table.get("share", ()), strict=False))
        share = SampledShare(**sampled) if sampled else None
        bounds = tuple(Bound(attack=b[0], estimate=cls.from_details(*b[1:])) for b in table.get("bounds", ()))
        skipped = tuple(Skipped(attack=attack, reason=reason) for attack, reason in table.get("skipped", ()))
        rest: dict[str, Any] = {"df": table.get("df"), "share": share, "parts": table.get("parts", {})}
        rest["reciprocal"] = table.get("reciprocal", False)
        return cls(value=value, se=se, bounds=bounds, skipped=skipped, **rest)


@dataclass(frozen=True, kw_only=True, slots=True)
class EstimateColumns:
    """The exact values of one measure for several files, with their parts: `values[i]` and `parts[name][i]` of file i."""

    values: Sequence[float]
    parts: Mapping[str, Sequence[float]] = field(default_factory=dict, hash=False)

    def to_details(self) -> list[str]:
        """Return `Estimate.to_details` of each file."""
        names = sorted(self.parts)
        if not names:
            return [NO_DETAILS] * len(self.values)
        fields = ", ".join(_quoted(name).replace("%", "%%") + ": %r" for name in names)
        template = f'{{"version": {DETAILS_VERSION}, "parts": {{{fields}}}}}'
        return [template % row for row in zip(*(self.parts[name] for name in names), strict=True)]


def merge_bounds(estimates: Iterable[Estimate]) -> tuple[Bound, ...]:
    """Return the largest bound of each attack. It bounds the mean as well."""
    largest: dict[str, Bound] = {}
    for bound in (bound for estimate in estimates for bound in estimate.bounds):
        if bound.attack not in largest or bound.estimate.value > largest[bound.attack].estimate.value:
            largest[bound.attack] = bound
    return tuple(largest.values())


def merge_skipped(estimates: Iterable[Estimate]) -> tuple[Skipped, ...]:
    """Return every attack that was skipped in one of the estimates, once."""
    return tuple(dict.fromkeys(skipped for estimate in estimates for skipped in estimate.skipped))


@cache
def quantile(level: float, df: float | None = None) -> float:
    """Return the quantile of the normal distribution, or of Student's t with `df` degrees of freedom."""
    from scipy.special import ndtri, stdtrit

    return float(ndtri(level) if df is None else stdtrit(df, level))


def wilson_upper(value: float, share: SampledShare, level: float) -> float:
    """Return the upper end of Wilson's interval, simultaneous over the compared shares (Bonferroni)."""
    z = quantile(1 - (1 - level) / share.comparisons)
    return share.scale * wilson_interval(value / share.scale, share.trials, z)[1]


def _wilson_margin(
    value: float, share: SampledShare, se: float, release_se: float, policy: ReleasePolicy
) -> float:  # fmt: skip
    """Return the eligibility limit of a share: Wilson's upper end of what a release measures, and then of its own error."""
    # the release samples so many records per record of the study
    ratio = (se / release_se) ** 2 if se and release_se and math.isfinite(se + release_se) else 1.0
    both = replace(share, trials=max(1, round(share.trials * ratio / (1 + ratio))))
    release = replace(share, trials=max(1, round(share.trials * ratio)))
    predicted = wilson_upper(value, both, _normal_level(policy.z_study))
    return wilson_upper(predicted, release, _normal_level(policy.z_release))


@cache
def _normal_level(z: float) -> float:
    """Return the one-sided confidence level of so many standard errors."""
    from scipy.special import ndtr

    return float(ndtr(z))


@cache
def _t_multiple(z: float, df: float | None) -> float:
    """Return how many standard errors with `df` degrees of freedom have the confidence level of z known ones."""
    return z if df is None else quantile(_normal_level(z), df)


# The interval of R = 1/MSE, where the MSE is a mean over draws with the relative standard error se/R.
#
# Squared errors are skewed to the right, and their standard error grows with their mean. The normal lower limit of the MSE
# is therefore a little too low, so the upper limit of R is safe. The normal upper limit of the MSE would be too low as
# well, so the lower limit of R uses the chi-square distribution with the mean and the variance of the MSE. Both ends were
# checked by simulation: tests/core/test_estimate.py.


def reciprocal_upper(value: float, se: float, z: float) -> float:
    """Return 1 over the lower confidence limit of the mean squared error, MSE - z se(MSE).

    It is infinite where that limit is not above 0: there are too few draws.
    """
    left = 1 - z * se / value if math.isfinite(value) else 0.0
    return value / left if left > 0 else math.inf


def reciprocal_lower(value: float, se: float, level: float) -> float:
    """Return 1 over the upper confidence limit of the mean squared error, by Satterthwaite's chi-square distribution."""
    from scipy.special import chdtri

    if not math.isfinite(value):
        return value
    df = 2 * (value / se) ** 2  # 0 where the standard error is infinite
    return float(value * chdtri(df, level) / df) if df > 0 else 0.0


def _parts_json(parts: Mapping[str, float]) -> str:
    """Return the parts as JSON with sorted keys.

    `repr` of a finite float is valid JSON and faster than `json.dumps`; every score of a study passes here.
    """
    if len(parts) == 1:
        ((name, value),) = parts.items()
        return f"{{{_quoted(name)}: {float(value)!r}}}"
    return "{" + ", ".join([f"{_quoted(name)}: {float(parts[name])!r}" for name in sorted(parts)]) + "}"


_quoted = cache(json.dumps)
NO_DETAILS = Estimate(value=0.0).to_details()
