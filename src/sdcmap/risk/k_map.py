"""Records whose combination of keys too few persons of the population have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.risk._frequencies import frequencies, positive_weights
from sdcmap.risk._population import PopulationMeasure

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
    on : the variables he knows, of any kind; by default the keys of the file.
    missing_is : "any value": a missing value matches every value; "a category": it matches missing alone.
    population : path of a file of the population with columns of the same names and categories (CSV, Parquet, SPSS, Stata,
        SAS); without one the number of persons is estimated by the sum of the weights of the records that match.
    sha256 : the first 16 digits of its SHA-256, filled in when left out; another content is refused.

    Formula: #{i: F_i < k} / n, F_i the persons of the population that agree with i; `parts`: the "smallest" F, and
        "unmatched", the share of records that nobody in the population file agrees with: they are exposed.
    Missing values as `missing_is` says. Weights: used where no population is named; they must be positive, and without both
    the file is the population. Households are not used. Recoded variables are looked up in the categories of the release,
    where each value became one of them; persons with a value that no record of the original has are left out then.
    Reference: Sweeney (2002), section 4.2; El Emam and Dankar (2008).

    Examples
    --------
    >>> KMap(k=5).text
    'KMap(k=5)'
    """

    weights: ClassVar[str] = "used where no population is named: a record stands for so many persons"

    k: Annotated[int, Range(2)] = 3

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if not self.population:
            yield from positive_weights(self, data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        persons = self._persons(original, masked)
        parts = {"smallest": float(persons.min())}
        if self.population:
            parts["unmatched"] = float((persons == 0).mean())
        return Estimate(float((persons < self.k - ROUNDING).mean()), None, parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where fewer than k persons match, 0 elsewhere."""
        return (self._persons(original, masked) < self.k - ROUNDING).astype(float)

    def _persons(self, original: Microdata, masked: Microdata) -> Array:
        """How many persons of the population match each record."""
        names = self.checked(original)
        if self.population:
            matches = self.matches(original, masked)
            return matches.population[matches.code]
        frequency = frequencies(masked, names, self.missing_is, 1.0)
        return frequency.weights[frequency.met.code]
