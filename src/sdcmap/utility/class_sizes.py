"""How many records can no longer be told apart: discernibility and the average size of groups of equal records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.data.cells import distinct_cells
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array


def group_sizes(data: Microdata, names: tuple[str, ...]) -> tuple[Array, int]:
    """The sizes of the groups of records that are equal on `names`, and how many records miss all of them; as a view."""
    if len(data) == 0:
        raise Undefined("the file has no records.")
    met = data.view(distinct_cells, names)
    blank = (met.codes < 0).all(axis=1)
    return met.count[~blank], int(met.count[blank].sum())


@dataclass(frozen=True)
class _GroupSizes(Measure):
    """A loss that is read off the groups of equal records of each file on its own.

    Parameters
    ----------
    on : variables of any kind; by default the keys.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    paired: ClassVar[bool] = False
    missing: ClassVar[str] = "missing is a category of its own; a record that misses every variable is suppressed"

    on: tuple[str, ...] = ()

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def of(self, data: Microdata, names: tuple[str, ...]) -> float:
        """The number of one file."""
        raise TypeError(f"{type(self).__name__} has no number.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        before, after = self.of(original, names), self.of(masked, names)
        return Estimate(after - before, None, {"original": before, "released": after})


@dataclass(frozen=True)
class Discernibility(_GroupSizes):
    """How much likelier it became that two records cannot be told apart.

    Formula: DM/n^2 of the released file less that of the original; DM = sum over groups of equal records of size^2, plus n
        for each suppressed record, which cannot be told from any. DM/n^2 is the chance that two records drawn at random,
        with replacement, are equal. `parts`: DM/n^2 of each file; ARX's number is that times n^2.
    Missing is a category of its own; a record that misses every variable is suppressed. Weights and households are not
    used. Below 0 where masking made more kinds of records than there were. Works for sampled and synthetic files.
    Reference: Bayardo and Agrawal (2005), section 2.3; ARX's discernibility metric.

    Examples
    --------
    >>> Discernibility(on=["age", "region"]).text
    "Discernibility(on=['age', 'region'])"
    """

    unit: ClassVar[str] = "chance of two records"
    bounds: ClassVar[tuple[float | None, float | None]] = (-1.0, 1.0)

    def of(self, data: Microdata, names: tuple[str, ...]) -> float:
        sizes, suppressed = data.view(group_sizes, names)
        return float((sizes.astype(np.float64) ** 2).sum() / len(data) ** 2 + suppressed / len(data))

    def nothing(self, original: Microdata) -> float | None:
        return 1.0 - self.of(original, self.checked(original))


@dataclass(frozen=True)
class AverageClassSize(_GroupSizes):
    """How much larger groups of equal records became, on average.

    Formula: n/groups of the released file less the same of the original; suppressed records are one group. `parts`:
        n/groups of each file, which is ARX's AECS.
    Missing is a category of its own; a record that misses every variable is suppressed. Weights and households are not
    used. Below 0 where masking made more kinds of records than there were. Works for sampled and synthetic files. Releasing
    nothing has no value.
    Reference: LeFevre, DeWitt, Ramakrishnan (2006), section 2.3 (there over k); ARX's average equivalence class size.

    Examples
    --------
    >>> AverageClassSize().text
    'AverageClassSize'
    """

    unit: ClassVar[str] = "records"
    bounds: ClassVar[tuple[float | None, float | None]] = (None, None)

    def of(self, data: Microdata, names: tuple[str, ...]) -> float:
        sizes, suppressed = data.view(group_sizes, names)
        return len(data) / (len(sizes) + (suppressed > 0))
