"""People who are alone with their keys, in the original and in the release too: synthpop's repU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.data.cells import common_codes, in_released_categories
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress


@dataclass(frozen=True)
class ReplicatedUniques(Measure):
    """The share of original records whose combination of keys nobody else has, in the original and in the release alike.

    The snooper knows that nobody but his target has the target's keys. He looks for them in the release and succeeds when
    exactly one record has them: it looks like the target's, whether it is or not, and of a synthetic file too.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default the keys of the file.

    Formula: repU = #{original records j: f_j = 1 and s_j = 1} / n, f_j and s_j the original and the released records
        with the keys of j. `parts`: "alone", the share with f_j = 1; "found", the share of these with s_j >= 1; "alone
        in the release", the share of released records that no other equals.
    A recoded variable is compared in the categories of the release, where each value became one of them. Missing is a
    category of its own. Weights and households are not used.
    Reference: Raab, Nowok, Dibben (2024), section 3, repU; synthpop's replicated.uniques.

    Examples
    --------
    >>> ReplicatedUniques(on=["age", "sex"]).text
    "ReplicatedUniques(on=['age', 'sex'])"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0
    paired: ClassVar[bool] = False

    on: tuple[str, ...] = ()

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        known = in_released_categories(original, masked, names)
        ours, theirs = counts_of(known, masked, names)
        alone = ours[0] == 1
        parts = {
            "alone": float(alone.mean()),
            "found": float((ours[1][alone] > 0).mean()) if alone.any() else 0.0,
            "alone in the release": float((theirs == 1).mean()),
        }
        return Estimate(float((alone & (ours[1] == 1)).mean()), None, parts)


def counts_of(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> tuple[tuple[Array, Array], Array]:
    """How many original and how many released records have the keys of each original record; and how many released ones
    those of each released record."""
    code, met = compress([common_codes(original, masked, name) for name in names])
    before, after = np.split(code, [len(original)])
    count = [np.bincount(side, minlength=len(met)) for side in (before, after)]
    return (count[0][before], count[1][before]), count[1][after]
