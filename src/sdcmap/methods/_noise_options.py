"""What additive noises share: the spread of the original, and the parameters that say what becomes of x + e."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from sdcmap.core.added_noise import AddedNoise
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Infeasible, Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.noise_covariance import complete_covariance, covariance_root, finished, rescaled, spreads

TOO_LARGE = "noise needs a variance, and these numbers are too large to have one: divide them by a constant."
TOO_FEW = "noise needs at least 2 records without missing values to know a variance."


def noise_spread(data: Microdata, names: tuple[str, ...]) -> Array:
    """The standard deviation of each variable, as a view."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.array([_spread(data.numbers(name)) for name in names])
    if not np.isfinite(spread).all():
        raise Infeasible(TOO_LARGE)
    return spread


def _spread(x: Array) -> float:
    spread = x.std(ddof=1) if len(x) > 1 else np.nan
    if not np.isnan(spread):
        return float(spread)
    if np.isnan(x).sum() > len(x) - 2:
        raise Infeasible(TOO_FEW)
    return float(spreads(x))


@cache
def noise_shape(kind: str) -> Callable[[Microdata, tuple[str, ...]], Array]:
    """The view that gives the root of the covariance matrix; one function for each kind of root."""

    def shape(data: Microdata, names: tuple[str, ...]) -> Array:
        x = data.matrix(names)
        if (~np.isnan(x).any(axis=1)).sum() < 2:
            raise Infeasible(TOO_FEW)
        with np.errstate(over="ignore", invalid="ignore"):
            covariance = complete_covariance(x)
        if not np.isfinite(covariance).all():
            raise Infeasible(TOO_LARGE)
        return covariance_root(covariance, kind)

    return shape


@dataclass(frozen=True)
class NoiseOptions:
    """The part of a method note that speaks of additive noise, variance as a share."""

    variance: float
    rescale: bool = False
    keep_zeros: bool = False
    lower: float | None = None
    upper: float | None = None
    integers: bool = False
    above: float | None = None
    variance_above: float = 0.0

    def problems(self) -> Iterator[str]:
        """Problems between the parameters that all additive noises share."""
        low = -np.inf if self.lower is None else self.lower
        high = np.inf if self.upper is None else self.upper
        if low >= high:
            yield ".lower must be below .upper."
        elif self.integers and np.ceil(low) > np.floor(high):
            yield ".integers needs a whole number between .lower and .upper."

    def kept(self, correlated: bool) -> str:
        """What the noise keeps, for the method note: every option that moves values again leaves less."""
        whole = ["zeros, value for value"] if self.keep_zeros else []
        if self.lower is not None or self.upper is not None or (self.rescale and self.keep_zeros):
            return "; ".join(whole) or "nothing exactly: the bounds move the mean too"
        mean = "the mean in expectation"
        if self.rescale:
            mean = (
                "means, variances and covariances in expectation"
                if correlated
                else "means and variances in expectation"
            )
        elif correlated and not self.keep_zeros and self.above is None:
            mean = "the mean in expectation; correlations"
        return "; ".join([mean, *whole])

    def distorted(self, correlated: bool) -> str:
        """What the noise distorts, for the method note."""
        every = "every value but zeros" if self.keep_zeros else "every value"
        if self.lower is not None or self.upper is not None:
            return f"{every}; means, variances and correlations, by the noise and by its bounds"
        grown = [] if self.rescale else ["variances grow by the noise share"]
        shrunk = [] if correlated else ["correlations shrink"]
        return "; ".join([every, *grown, *shrunk])

    def masked(self, data: Microdata, names: tuple[str, ...], noise: Array, spread: Array | None = None) -> Microdata:
        """The file with `noise` at its share, and all that comes after it.

        noise : m x n, with the variances of the variables, or with variance 1 where their `spread` (m) is given; what is
            in it becomes the masked values.
        """
        changed = {}
        for j, name in enumerate(names):
            x = data.numbers(name)
            y = noise[j]
            y *= np.sqrt(self._shares(x)) * (1.0 if spread is None else spread[j])
            y += x
            y = rescaled(y, self.variance) if self.rescale else y
            changed[name] = finished(x, y, self.keep_zeros, self.integers, self.lower, self.upper)
        return data.change(None, changed)

    def _shares(self, x: Array) -> Array | float:
        """The noise variance of each value, as a share of its variable's."""
        return self.variance if self.above is None else np.where(x > self.above, self.variance_above, self.variance)

    @property
    def plain(self) -> bool:
        """Whether every released value is x + e, but for an affine map: no bounds, kept zeros or larger noise above."""
        return not self.keep_zeros and self.lower is None and self.upper is None and self.above is None

    def to_take_off(
        self, on: tuple[str, ...], within: tuple[str, ...], *, correlated: bool, normal: bool = True
    ) -> AddedNoise:
        """The noise as a data user takes it off the released file; Undefined with the reason where that cannot be done."""
        reasons = {
            "bounds cut the noise off, so means and variances are biased": self.lower is not None
            or self.upper is not None,
            "its variance depends on the true value (above, variance_above)": self.above is not None,
            "zeros were kept, so the noise depends on the true value": self.keep_zeros,
            "values were rounded to whole numbers": self.integers,
        }
        met = [reason for reason, holds in reasons.items() if holds]
        if met:
            raise Undefined(f"the noise cannot be taken off: {'; '.join(met)}.")
        return AddedNoise(on, self.variance, correlated, self.rescale, within, normal)
