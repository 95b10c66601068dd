"""The distribution of one variable before and after masking, and what measures of it share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sdcmap.data.microdata import Array, Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.statistics.distances_1d import distribution_distances, in_order
from sdcmap.kernels.statistics.moments import mean_and_variance
from sdcmap.utility._numeric import NumericMeasure, numbers_of, sound_weights


def rising(data: Microdata, names: tuple[str, ...]) -> tuple[Array, Array]:
    """The known numbers of one variable, rising, and ones; as a view."""
    x = numbers_of(data, names[0])
    return in_order(x[~np.isnan(x)], None)


def rising_with_weights(data: Microdata, names: tuple[str, ...]) -> tuple[Array, Array]:
    """The same with the weights, whose column is named second; a record of weight 0 is left out."""
    x, weights = numbers_of(data, names[0]), sound_weights(data)
    known = ~np.isnan(x) & (weights > 0)
    return in_order(x[known], weights[known])


@dataclass(frozen=True)
class MarginMeasure(NumericMeasure):
    """A loss of utility that is read off the distributions of single numeric variables."""

    def margin(self, data: Microdata, name: str) -> tuple[Array, Array]:
        """The known numbers, rising, with the weight of each."""
        return data.view(rising_with_weights if self.weighted else rising, self.with_weight(data, name))

    def distances(self, original: Microdata, masked: Microdata, name: str) -> tuple[float, float] | None:
        """Kolmogorov-Smirnov's and Wasserstein's distance; None where the released file has no value."""
        before, after = self.margin(original, name), self.margin(masked, name)
        if len(before[0]) == 0:
            raise Undefined(f"no value of {name!r} is known in the original.")
        if len(after[0]) == 0:
            return None
        return (0.0, 0.0) if after is before else distribution_distances(*before, *after)

    def spread(self, original: Microdata, name: str) -> float:
        """The standard deviation in the original."""
        x, weights = self.margin(original, name)
        return 0.0 if x[0] == x[-1] else float(np.sqrt(mean_and_variance(x, weights).variance))
