"""How far masking moved the place of each variable among the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Undefined
from sdcmap.kernels.statistics.moments import moments
from sdcmap.utility._numeric import NumericMeasure, matrix_of

SINGULAR = 1e-10  # an eigenvalue of a correlation matrix below this is 0


def explained(correlation: Array) -> Array:
    """1/(1 - R^2) of each variable on the others, the diagonal of the inverse correlation matrix, scaled to length 1."""
    diagonal = np.diagonal(np.linalg.inv(correlation))
    turned: Array = diagonal / np.sqrt((diagonal**2).sum())
    return turned


@dataclass(frozen=True)
class CorrelationLoss(NumericMeasure):
    """The loss of how well the variables explain each other: sdcMicro's IL_correl.

    Parameters
    ----------
    on : numeric variables, or ordinal ones whose categories are numbers, at least 2; by default all numeric ones.

    Formula: |u - v| / sqrt(2); u and v are the diagonals of the inverse correlation matrices of both files, 1/(1 - R_j^2)
        of each variable on all others, each divided by its length. 0: every variable is as much explained by the others
        as before, against the rest; 1: what was explained best is now the only one that is not.
    Noise on all variables alike brings the v_j together; so does independence. Undefined where a variable is a sum of
    others in one of the files.
    Missing: complete records, of each file on its own. Weights: used when `weighted`. Households are not used. Works for
    sampled and synthetic files; undefined where numbers were recoded into categories. Releasing nothing has no value.
    Reference: Mlodak (2020), with the factor of sdcMicro.

    Examples
    --------
    >>> CorrelationLoss(on=["income", "tax"]).text
    "CorrelationLoss(on=['income', 'tax'])"
    """

    unit: ClassVar[str] = "distance, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    missing: ClassVar[str] = "complete records, of each file on its own"

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if len(set(self.variables(data))) < 2:
            yield "CorrelationLoss needs at least 2 variables."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        first = original.remember(("explained", self), lambda: self._explained(original, names))
        lost = float(np.sqrt(((first - self._explained(masked, names)) ** 2).sum() / 2))
        return Estimate(value=min(lost, 1.0))

    def _explained(self, data: Microdata, names: tuple[str, ...]) -> Array:
        x, weights = matrix_of(data, names), self.weights_of(data)
        complete = ~np.isnan(x).any(axis=1)
        correlation = moments(x[complete], weights[complete]).correlation
        if np.isnan(correlation).any() or np.linalg.eigvalsh(correlation)[0] < SINGULAR:
            raise Undefined("a measured variable is a sum of others in one of the files: leave it out.")
        return explained(correlation)
