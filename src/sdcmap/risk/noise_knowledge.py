"""Attackers who use the mean of the released values, and attackers who correct a percentile for the noise.

Duncan, Keller-McNulty, Stokes (2001), sections 3.1 and 3.2, on a file. Noise of variance l2 stretches the values about
their mean: a percentile mu + l s of the original becomes mu + l sqrt(s2 + l2). An attacker who knows l2, or estimates it,
shrinks the released percentile back by s^/S_Y, where s^2 = S_Y^2 - l2 estimates the original variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, Undefined
from sdcmap.core.added_noise import AddedNoise
from sdcmap.risk._beliefs import noise_variances
from sdcmap.risk.position import Position, PrecisionMeasure, sort_numbers


def shrink_to_spread(values: Array, value: float, spread: float) -> float:
    """Return ybar + (value - ybar) s^/S_Y: the percentile `value` of the file as if the file had the spread s^.

    A spread of S_Y or more changes nothing. Section 3.2, from eq. 5 with l_Yp = l_Xp: noise keeps the shape.
    """
    mean, observed = float(values.mean()), float(values.std(ddof=1))
    return value if spread >= observed else mean + (value - mean) * spread / observed


def mean_error(mean: float, x: Array, target: str | float, value: float | None) -> float:
    """Return the mean squared error of the guess `mean` for a target of the file x or of its population.

    For a target with a known rank, `value` is its true value.
    """
    if value is not None:
        return (mean - value) ** 2  # eq. 1, given the file
    center, n = float(x.mean()), len(x)
    squares = math.fsum((x - center) ** 2)
    if target == "sample":
        return (mean - center) ** 2 + squares / n  # eq. 3, given the file
    return (mean - center) ** 2 + squares / (n - 1) * (1 + 1 / n)  # eq. 2: a new person, and the sampling error of xbar


@dataclass(frozen=True)
class MeanGuess(PrecisionMeasure):
    """How precisely an attacker who only has the mean of the released values learns a target's value: R = 1/MSE.

    The attacker cannot tell which record is the target's, and knows nothing of its rank. The best they can do is to take
    the mean of the released values. Noise hardly changes this risk: it is what every useful file reveals.

    Parameters
    ----------
    on : the numeric variable the attacker wants to know.
    target : "population", a person of the population who may not be in the file; "sample", a person of the file, on
        average over all; "maximum", "minimum", or a share p in (0, 1): the person with the value of rank ceil(n p).

    Formula: R = 1/E(Ybar - tau)^2 over replicates. "population": (Ybar - xbar)^2 + s^2 (n + 1)/n, in expectation
        n/((n + 1) s^2 + lambda^2), eq. 2. "sample": the mean of (Ybar - x_i)^2, eq. 3 given the file. A rank: (Ybar -
        x_(k))^2, eq. 1 given the file. s^2 is the variance of the original. `parts`: "squared_error".
    Missing values are left out, in each file separately. Weights and households are not used.
    Releasing nothing leaves an attacker who knows the mean of the file: the same formula with Ybar = xbar.
    Reference: Duncan, Keller-McNulty, Stokes (2001), eqs. 1 to 3.

    Examples
    --------
    >>> MeanGuess(on="income", target="population").text
    "MeanGuess(on='income', target='population')"
    """

    label: ClassVar[str] = "Risk from the released mean"
    description: ClassVar[str] = "How precisely the mean of the released values reveals the value of one person."
    knowledge: ClassVar[str] = "only the mean of the released values"

    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "left out, in each file separately"

    on: str
    target: Literal["population", "sample", "maximum", "minimum"] | Annotated[float, Range(0, 1, "()")] = "sample"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.check_variables(original)
        squared = self._squared_error(original, _known_values(masked, self.on))
        return Estimate(value=1 / squared if squared else float("inf"), parts={"squared_error": squared})

    def baseline(self, original: Microdata) -> float | None:
        try:
            squared = self._squared_error(original, _known_values(original, self.on))
        except Undefined:
            return None
        return 1 / squared if squared else None

    def _squared_error(self, original: Microdata, released: Array) -> float:
        x, value = _known_values(original, self.on), None
        if self.target != "population" and self.target != "sample":
            value = Position(on=self.on, target=self.target).value(original)
        if self.target == "population" and len(x) < 2:
            raise Undefined(f"{self.on!r} has fewer than 2 values, so it has no variance.")
        return mean_error(float(released.mean()), x, self.target, value)


@dataclass(frozen=True)
class PositionNoiseKnown(Position):
    """How precisely an attacker who knows the target's rank and the noise variance learns its value: R = 1/MSE.

    The agency has published lambda. The attacker takes the released value at the target's rank, as in `Position`, and
    removes the bias of the noise: they shrink the value toward the mean until the file has the variance that it had
    before the noise. Compare it with `Position` before you publish lambda.

    Parameters
    ----------
    method : how the file was made; a sweep and a release fill it in. Without it the value is undefined.

    Formula: R = 1/E(T - x_(k))^2 over replicates, T = Ybar + (Y_(k) - Ybar) s^/S_Y, s^2 = max(S_Y^2 - lambda^2, 0),
        lambda^2 the stated share of the original's variance (with strata, the mean over records). Bounds and rounding
        after the noise are ignored. `parts`: "squared_error".
    Undefined where the variable is masked by other methods than noise, or by noise whose variance depends on the value.
    Rescaled noise needs no correction. Missing values are left out, in each file separately. Weights and households
    are not used. Releasing nothing leaves the attacker the mean of the file: R = 1/(xbar - x_(k))^2.
    Reference: Duncan, Keller-McNulty, Stokes (2001), section 3.2, first source of information about lambda.

    Examples
    --------
    >>> PositionNoiseKnown(on="income", target=0.99).text
    "PositionNoiseKnown(on='income', target=0.99)"
    """

    label: ClassVar[str] = "Position risk, noise known"
    description: ClassVar[str] = (
        "How precisely the released value of a rank reveals the true one if the noise variance is published."
    )
    knowledge: ClassVar[str] = "the rank of the target, and the noise variance"

    method: Method | None = field(default=None, kw_only=True)

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def squared_error(self, original: Microdata, masked: Microdata) -> float:
        """Return (T - x_(k))^2 of one masked file."""
        values = _known_values(masked, self.on)
        _require_spread(values, self.on)
        left = float(values.var(ddof=1)) - self._noise_variance(original)
        guess = shrink_to_spread(values, self._at_rank(masked), math.sqrt(max(left, 0.0)))
        return (guess - self.value(original)) ** 2

    def _noise_variance(self, original: Microdata) -> float:
        """Return lambda^2, the mean over the records; 0 where the method leaves the variance unchanged."""
        noise = stated_noise(self.method, self.on)
        if noise is None or noise.rescaled:
            return 0.0
        key = "noise variance", self.on, noise
        return original.remember(key, lambda: float(noise_variances(original, self.on, noise).mean()))


def stated_noise(method: Method | None, name: str) -> AddedNoise | None:
    """Return the noise that the method adds to a variable as its note states it, or None if it does not mask it.

    Raise Undefined if other methods mask the variable too.
    """
    if method is None:
        raise Undefined("the method of the file is not known: score it in a sweep, or set `method`.")
    steps = [step for step in method.steps if name in step.masked_names]
    if len(steps) > 1:
        raise Undefined(f"several steps mask {name!r}, so its noise has no single variance.")
    return steps[0].stated_noise() if steps else None


@dataclass(frozen=True)
class PositionNoiseGuessed(Position):
    """How precisely an attacker who knows the target's rank and backs the noise out learns its value: R = 1/MSE.

    The agency has not published lambda, but the attacker knows similar data and believes that the variable has the
    standard deviation sigma_0 without noise. What the released file has beyond it must be noise, and they correct for
    it as in `PositionNoiseKnown`.

    Parameters
    ----------
    believed_sd : sigma_0, the standard deviation that the attacker believes, in the variable's unit, above 0. State it
        from public sources; it is never taken from the original.

    Formula: R = 1/E(T - x_(k))^2 over replicates, T = Ybar + (Y_(k) - Ybar) s^/S_Y; lambda^2 = max(S_Y^2 - sigma_0^2, 0)
        is backed out, so s^ = min(S_Y, sigma_0). `parts`: "squared_error".
    Missing values are left out, in each file separately. Weights and households are not used. Releasing nothing leaves
    the attacker the mean of the file: R = 1/(xbar - x_(k))^2.
    Reference: Duncan, Keller-McNulty, Stokes (2001), section 3.2, second source of information about lambda.

    Examples
    --------
    >>> PositionNoiseGuessed(on="income", believed_sd=12000).text
    "PositionNoiseGuessed(on='income', believed_sd=12000.0)"
    """

    label: ClassVar[str] = "Position risk, noise backed out"
    description: ClassVar[str] = (
        "How precisely the released value of a rank reveals the true one to an attacker who estimates the noise."
    )
    knowledge: ClassVar[str] = "the rank of the target, and the spread of similar data"

    believed_sd: Annotated[float, Range(0, None, "()")] = field(kw_only=True)

    def squared_error(self, original: Microdata, masked: Microdata) -> float:
        """Return (T - x_(k))^2 of one masked file."""
        values = _known_values(masked, self.on)
        _require_spread(values, self.on)
        guess = shrink_to_spread(values, self._at_rank(masked), self.believed_sd)
        return (guess - self.value(original)) ** 2


def _known_values(data: Microdata, name: str) -> Array:
    """Return the values that are not missing; Undefined if there are none."""
    values = data.view(sort_numbers, name)
    if len(values) == 0:
        raise Undefined(f"{name!r} has no value that is not missing.")
    return values


def _require_spread(values: Array, name: str) -> None:
    if len(values) < 2:
        raise Undefined(f"{name!r} has fewer than 2 released values, so it has no variance.")
