"""Hellinger distance between the tables before and after masking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.random import Generator

from sdcmap.cells import moves, weighted_counts
from sdcmap.kernels.cells import hellinger
from sdcmap.measure import Estimate, Measure
from sdcmap.microdata import Microdata


@dataclass(frozen=True)
class Hellinger(Measure):
    """How far the table of the released file is from the original's: 0 the same, 1 no cell in common.

    Parameters
    ----------
    on : the variables that make the table; by default the keys of the file.
    weighted : compare weighted counts; needs a weight. Swapping keeps unweighted margins only.

    Formula: H = sqrt(1/2 sum (sqrt f - sqrt g)^2), f and g the relative frequencies of the cells before and after.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not used.
    Reference: Gomatam, Karr, Sanil (2003), section 4.

    Examples
    --------
    >>> Hellinger().text
    'Hellinger'
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    unit: ClassVar[str] = "distance, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 1.0
    weights: ClassVar[str] = "used when `weighted`, else every record counts once"

    on: tuple[str, ...] = ()
    weighted: bool = False

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        if self.weighted:
            return Estimate(hellinger(*weighted_counts(original, masked, names)))
        moved = moves(original, masked, names)
        if len(original) != len(masked):
            return Estimate(hellinger(moved.before, moved.after))
        touched = moved.before != moved.after  # all other cells add 0
        return Estimate(hellinger(moved.before[touched], moved.after[touched], len(original)))

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if self.weighted and data.weight is None:
            yield "Hellinger.weighted needs a file with a weight."
