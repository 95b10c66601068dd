"""Other readings of propensity scores: how far apart their distributions are, and how many records are told rightly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.kernels.arrays import Array
from sdcmap.utility.propensity import Propensity

ROUNDING = 9  # decimals of a probability: those that are equal but for rounding are one


@dataclass(frozen=True)
class _PropensityTest(Propensity):
    """Of a logit alone, and without a null."""

    revision: ClassVar[int] = 1
    nulled: ClassVar[bool] = False

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.model != "logit":
            yield ".model must be 'logit'."


@dataclass(frozen=True)
class SPECKS(_PropensityTest):
    """How far apart the propensity scores of released and original records are: Kolmogorov-Smirnov's distance, 0 when a
    model that sees both files cannot tell them apart.

    Parameters
    ----------
    weighted : records count with their survey weights, which are scaled to a mean of 1 in each file; needs a weight.
    model : "logit"; trees have no scores that could be compared here.
    order : 1, each variable alone; 2, also the products of two variables and the squares of numbers.
    leaf : not used.
    resamples : not used: there is no null.

    Formula: sup over t of |F(t) - G(t)|, F and G the distribution functions of the fitted probabilities of being a released
    record, among the original and among the released records. Probabilities are those of Propensity, with its ridge.
    Missing is a category of its own, of a number too. Weights: used when `weighted`. Households are not used. New
    categories tell records apart; undefined where numbers were recoded into categories, or where more than 6,000 terms
    occur. Where files hardly differ it falls slowly: the square root of what pMSE is.
    Reference: Bowen, Liu, Su (2021), section 2.3; Raab, Nowok, Dibben (2021), where it is compared with pMSE and PO50.

    Examples
    --------
    >>> SPECKS(on=["age", "sex"], order=1).text
    "SPECKS(on=['age', 'sex'], order=1)"
    """

    unit: ClassVar[str] = "distance, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)

    def told_apart(self, p: Array, released: Array, original: Array) -> float:
        _, place = np.unique(np.round(p, ROUNDING), return_inverse=True)
        sides = [np.cumsum(np.bincount(place.ravel(), side)) / side.sum() for side in (released, original)]
        return float(np.abs(sides[0] - sides[1]).max())


@dataclass(frozen=True)
class PO50(_PropensityTest):
    """How many more records than by guessing a model that sees both files assigns to the right one.

    Parameters
    ----------
    weighted : records count with their survey weights, which are scaled to a mean of 1 in each file; needs a weight.
    model : "logit"; trees are judged by pMSE.
    order : 1, each variable alone; 2, also the products of two variables and the squares of numbers.
    leaf : not used.
    resamples : not used: there is no null.

    Formula: share of records of both files that are on the right side of probability 1/2, less that of always naming the
    larger file; synthpop's PO50 is that times 100, for files of one size. A record at 1/2 is right by half.
    Missing is a category of its own, of a number too. Weights: used when `weighted`. Households are not used. New
    categories tell records apart; undefined where numbers were recoded into categories, or where more than 6,000 terms
    occur.
    Reference: Raab, Nowok, Dibben (2021), section 2.

    Examples
    --------
    >>> PO50(on=["age", "sex"]).text
    "PO50(on=['age', 'sex'])"
    """

    unit: ClassVar[str] = "share of records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 0.5)

    def told_apart(self, p: Array, released: Array, original: Array) -> float:
        side = np.sign(np.round(p - 0.5, ROUNDING))
        right = (released @ (1 + side) + original @ (1 - side)) / 2
        sizes = released.sum(), original.sum()
        return max(float((right - max(sizes)) / sum(sizes)), 0.0)
