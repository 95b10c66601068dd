"""Priors that the agency states: what an intruder or a user believes before the release.  Trottini (2001), par. 13-14."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from sdcmap.core import Range, Value

MAX_PRIORS = 400  # members of one class; each is evaluated on its own


@dataclass(frozen=True)
class Prior(Value):
    """What an intruder or a user believes before the release, as the agency states it.

    State one of three: a distribution (mean and variance), counts of categories, or a file.

    Parameters
    ----------
    mean : mean of a number. A pair is a class of priors: every mean from the first to the second.
    variance : variance of a number, above 0. A pair is a class, as for the mean.
    points : how many values stand for each pair of a class, from end to end; variances in equal ratios.
    categories : the categories of a variable, as they are written in the file.
    counts : how often each of them occurs, such as in a published table; only their ratios matter for an intruder.
    population : path of a file that contains the variable, such as an earlier survey.
    weight : the column of this file with survey weights; by default every record counts once.
    sha256 : the first 16 digits of the file's SHA-256, filled in when left out; another content is refused.

    Reference: Trottini (2001), par. 13 (assumption 1) and 14.

    Examples
    --------
    >>> Prior(mean=20, variance=(25, 100)).text
    'Prior(mean=20.0, variance=[25.0, 100.0])'
    """

    mean: float | tuple[float, ...] | None = None
    variance: float | tuple[float, ...] | None = None
    points: Annotated[int, Range(2, 20)] = 5
    categories: tuple[str, ...] = ()
    counts: tuple[Annotated[float, Range(0)], ...] = ()
    population: str = ""
    weight: str = ""
    sha256: str = ""

    def problems(self) -> Iterator[str]:
        is_number = self.mean is not None or self.variance is not None
        if is_number + bool(self.categories or self.counts) + bool(self.population) != 1:
            yield ": state one of .mean with .variance, .categories with .counts, and .population."
            return
        if is_number and (self.mean is None or self.variance is None):
            yield ".mean and .variance must be stated together."
        elif is_number:
            for name, ends in (("mean", self.means), ("variance", self.variances)):
                if not 1 <= len(ends) <= 2 or ends[0] > ends[-1]:
                    yield f".{name} must be a number, or a pair whose first number is not above the second."
            if self.variances and min(self.variances) <= 0:
                yield ".variance must be above 0."
        if len(self.categories) != len(self.counts) or len(set(self.categories)) < len(self.categories):
            yield ".categories must be different from each other, with one of .counts for each."
        elif self.categories and not sum(self.counts) > 0:
            yield ".counts must have a sum above 0."
        if self.weight and not self.population:
            yield ".weight names a column of .population, which is not stated."

    @property
    def means(self) -> tuple[float, ...]:
        """The stated mean, or the ends of its interval."""
        return _as_tuple(self.mean)

    @property
    def variances(self) -> tuple[float, ...]:
        """The stated variance, or the ends of its interval."""
        return _as_tuple(self.variance)

    def normals(self) -> list[tuple[float, float]]:
        """Return mean and variance of every member of the class: one, or a grid from end to end.

        >>> Prior(mean=(0, 1), variance=4, points=3).normals()
        [(0.0, 4.0), (0.5, 4.0), (1.0, 4.0)]
        """
        means = np.linspace(self.means[0], self.means[1], self.points) if len(set(self.means)) > 1 else self.means[:1]
        wide = len(set(self.variances)) > 1
        variances = np.geomspace(self.variances[0], self.variances[1], self.points) if wide else self.variances[:1]
        return [(float(mean), float(variance)) for mean in means for variance in variances]

    def shares(self) -> dict[str, float]:
        """Return the share of each stated category."""
        total = sum(self.counts)
        return {name: count / total for name, count in zip(self.categories, self.counts, strict=True)}


def _as_tuple(stated: float | tuple[float, ...] | None) -> tuple[float, ...]:
    return () if stated is None else stated if isinstance(stated, tuple) else (stated,)
