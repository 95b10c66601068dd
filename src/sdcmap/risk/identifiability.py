"""People to whom a released record is nearer than any other person: epsilon-identifiability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.value import Range
from sdcmap.data.cells import in_released_categories
from sdcmap.data.label_layers import spelt_out
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.tables.attribution import share_error, two_nearest
from sdcmap.risk._control import positions, ranges_of

PAIR = 2e-9  # seconds: of one variable of a person and a record


@dataclass(frozen=True)
class Identifiability(Measure):
    """The share of people to whom some released record is nearer than every other person of the original.

    The snooper knows everything about a person. Where a released record is nearer to the person than the person is to
    anybody else in the original, it cannot well be about anybody else: he succeeds. It needs no link between records, so
    that synthetic files can be measured; a file is epsilon-identifiable where the share is at most epsilon. It has no
    people outside to compare with: see WorstMembership.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default every column that somebody could know.
    targets : the most people looked at, drawn at random, at least 1.

    Formula: #{people i: min over released r of d(i, r) < min over other people j of d(i, j)} / people, d Gower's: the
        mean of |x - y| / range for numbers and 0 or 1 for categories. People who have an equal in the original are not
        identified.
    `parts`: the median distance to the nearest "released" record and to the nearest "other" person.
    Missing is a category of its own; a missing number is at distance 1 from a known one. A recoded variable is compared in
    the categories of the release, where each value became one of them. Weights and households are not used.
    Reference: Yoon, Drumright, van der Schaar (2020), definition 1, there with weights by entropy.

    Examples
    --------
    >>> Identifiability(targets=500).text
    'Identifiability(targets=500)'
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of people"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0
    paired: ClassVar[bool] = False
    sampled: ClassVar[bool] = True

    on: tuple[str, ...] = ()
    targets: Annotated[int, Range(1)] = 1000

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.knowable

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if len(data) < 2:
            yield "Identifiability needs at least 2 people."

    def seconds(self, data: Microdata) -> float | None:
        return 2.0 * min(self.targets, len(data)) * len(data) * len(self.variables(data)) * PAIR

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        if len(masked) == 0:
            raise Undefined("the file has no records.")
        known = in_released_categories(original, masked, names)
        masked = spelt_out(known, masked, names)
        ranges = ranges_of(known, names)
        people = known.take(rng.permutation(len(known))[: self.targets])
        released = two_nearest(*positions(people, masked, names, ranges))[:, 0] / len(names)
        other = two_nearest(*positions(people, known, names, ranges))[:, 1] / len(names)  # the nearest is the person
        share = float((released < other).mean())
        whole = len(people) == len(known)
        parts = {"released": float(np.median(released)), "other": float(np.median(other))}
        return Estimate(value=share, se=0.0 if whole else share_error(share, len(people)), parts=parts)
