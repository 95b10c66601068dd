"""People of the population of whom a release tells whether they are in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Share
from sdcmap.data.cells import in_released_categories
from sdcmap.data.covering import check_one_depth
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.risk._population import Matches, PopulationMeasure

SLACK = 1e-9


@dataclass(frozen=True)
class DeltaPresence(PopulationMeasure):
    """The share of persons of the population of whom the release tells too well whether they are in the file.

    The snooper has a register of the population, the keys of everybody in it, and wants to know who is in the file: being
    in it may itself be the secret. Of the persons who share their keys as many are in the file as released records have
    them. He succeeds when that is nearly all of them, or none. What masking changed counts as if it were true.

    Parameters
    ----------
    low, high : the chances of being in the file, in [0, 1], between which nobody has learnt too much; low at most high.
    population : path of a file of the population, those in the original included, with columns of the same names and
        categories (CSV, Parquet, SPSS, Stata, SAS); it must be given.

    Formula: #{persons j: delta_j < low or delta_j > high} / persons, delta_j = f/F, at most 1: f released records and F
        persons of the population agree with j. `parts`: the "smallest" and the "largest" delta, and the share of
        persons "above".
    Missing values as `missing_is` says. Weights and households are not used. Recoded variables are looked up in the
    categories of the release, where each value became one of them; persons with a value that no record of the original has
    are left out then. Undefined where labels are of several depths ("37" beside "(35, 40]"): a person has no one group.
    Reference: Nergiz, Atzori, Clifton (2007), definition 4; ARX's d-presence.

    Examples
    --------
    >>> DeltaPresence(high=0.5, population="register.csv", sha256="9f86d081884c7d65").text
    "DeltaPresence(population='register.csv', sha256='9f86d081884c7d65', high=0.5)"
    """

    unit: ClassVar[str] = "share of persons"
    revision: ClassVar[int] = 2  # 2: undefined where labels are of several depths

    low: Share = 0.0
    high: Share = 0.8
    population: str = field(kw_only=True)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.low > self.high:
            yield ".low must be at most .high."
        if not self.population:
            yield ".population must be given: the path of a file of the population."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        matches = self._matches(original, masked)
        delta = _presence(matches.released, matches.population)
        there = matches.persons > 0
        if not there.any():
            raise Undefined("nobody is left in the file of the population.")
        share = matches.persons / matches.persons.sum()
        above = float(share @ (delta > self.high + SLACK))
        value = min(1.0, above + float(share @ (delta < self.low - SLACK)))
        return Estimate(
            value, None, {"smallest": float(delta[there].min()), "largest": float(delta[there].max()), "above": above}
        )

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The chance of being in the file of the persons with each record's keys; 1 where the population has none."""
        matches = self._matches(original, masked)
        return _presence(matches.released, matches.population)[matches.code]

    def _matches(self, original: Microdata, masked: Microdata) -> Matches:
        names = self.checked(original)
        check_one_depth(in_released_categories(original, masked, names), masked, names)
        return self.matches(original, masked)


def _presence(released: Array, population: Array) -> Array:
    """f/F, at most 1."""
    share: Array = np.minimum(released / np.maximum(population, 1.0), 1.0)
    return share
