"""Records whose combination of keys too few persons of the population have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.risk._frequencies import frequencies, positive_weights
from sdcmap.risk._population import PopulationMeasure

# How many records of a sample must share a combination, so that enough persons of the population share it too.


def records_needed(k: int, fraction: float, level: float, *, truncated: bool) -> int:
    """The least k' <= k such that a combination of k persons seldom (level) shows k' records or more: the k-anonymity of
    the sample that stands for k-map in its population.

    Records of a combination: X ~ Poisson(k fraction). D4, truncated: the least c with P(X >= c | X > 0) <= level; D3: one
    more than the least c > 0 with P(X >= c) <= level.  El Emam and Dankar (2008), as ARX reads them
    """
    from scipy.special import pdtrc

    mean = k * fraction
    count = np.arange(1, k + 1)
    tail = pdtrc(count - 1, mean) / (-np.expm1(-mean) if truncated else 1.0)
    rare = np.flatnonzero(tail <= level)
    least = int(count[rare[0]]) if len(rare) else k
    return min(k, least if truncated else least + 1)


ROUNDING = 1e-9  # sums of weights


@dataclass(frozen=True)
class KMap(PopulationMeasure):
    """The share of records whose combination of keys fewer than k persons of the population have.

    The snooper has a register of the population with names and the keys, and does not know who is in the sample. He looks
    the keys of a released record up and succeeds when fewer than k persons can be meant: that a record is alone in the
    sample does not help him where the population has many like it. What masking changed counts as if it were true.

    Parameters
    ----------
    k : a record is exposed when fewer than k persons match it, at least 2.
    estimate : how persons are counted without a file of them. "weights": the sum of the weights of the records that match;
        "poisson" (D3) and "zero-truncated" (D4): a test that k persons match, by the number of records that do.
    level : of the test, the share of combinations of too few persons that pass it, in (0, 1).
    fraction : the sampling fraction of the test, in (0, 1]; by default records over the sum of the weights, and 1 without.

    Formula: #{i: F_i < k} / n, F_i the persons of the population that agree with i; `parts`: the "smallest" F, and
        "unmatched", the share of records that nobody in the population file agrees with: they are exposed. By a test
        f_i < k' in its place, f_i the records that agree with i, k' <= k the least number that a combination of k persons
        shows seldom: P(X >= k' | X > 0) <= level, X ~ Poisson(k fraction), zero-truncated; 1 + min{c > 0: P(X >= c) <=
        level}, poisson. `parts`: the "smallest" f and "needed", k'.
    Missing values as `missing_is` says. Weights: used where no population is named; they must be positive, and without both
    the file is the population, unless a fraction is stated. Households are not used. Recoded variables are looked up in
    the categories of the release, where each value became one of them; persons with a value that no record of the original
    has are left out then. In a population file labels of several depths ("37", "(35, 40]") are read: persons whose values
    they cover match. Without one equal labels are counted, so that F is at most too small.
    Reference: Sweeney (2002), section 4.2; Pannekoek (1999), D3; El Emam and Dankar (2008), D4.

    Examples
    --------
    >>> KMap(k=5).text
    'KMap(k=5)'
    """

    weights: ClassVar[str] = "used where no population is named: a record stands for so many persons"

    revision: ClassVar[int] = 3  # 2: estimates by a test; 3: labels of several depths are read

    k: Annotated[int, Range(2)] = 3
    estimate: Literal["weights", "poisson", "zero-truncated"] = "weights"
    level: Annotated[float, Range(0, 1, "()")] = 0.01
    fraction: Annotated[float | None, Range(0, 1, "(]")] = None

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.population and self.estimate != "weights":
            yield f".estimate = {self.estimate!r} and .population: persons are estimated or counted, not both."
        if self.fraction is not None and self.estimate == "weights":
            yield '.fraction belongs to the estimates "poisson" and "zero-truncated".'

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if not self.population:
            yield from positive_weights(self, data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        seen, needed = self._seen(original, masked)
        parts = {"smallest": float(seen.min())}
        if self.population:
            parts["unmatched"] = float((seen == 0).mean())
        if self.estimate != "weights":
            parts["needed"] = float(needed)
        return Estimate(float((seen < needed - ROUNDING).mean()), None, parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where too few persons match, 0 elsewhere."""
        seen, needed = self._seen(original, masked)
        return (seen < needed - ROUNDING).astype(float)

    def _seen(self, original: Microdata, masked: Microdata) -> tuple[Array, int]:
        """How many persons of the population match each record, or records where a test decides; and how many must."""
        names = self.checked(original)
        if self.population:
            matches = self.matches(original, masked)
            return matches.population[matches.code], self.k
        frequency = frequencies(masked, names, self.missing_is, 1.0)
        if self.estimate == "weights":
            return frequency.weights[frequency.met.code], self.k
        share = self.fraction or min(1.0, len(masked) / float(masked.weights.sum()))
        needed = records_needed(self.k, share, self.level, truncated=self.estimate == "zero-truncated")
        return frequency.records[frequency.met.code], needed
