"""People whose record can be looked up by what is known of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.value import Range
from sdcmap.data.cells import common_codes, in_released_categories
from sdcmap.data.covering import explained, fitting, in_texts
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress

# People looked up in a release by what is known of them: records that have their values, or whose labels cover them.


class LookUp(NamedTuple):
    """For each released record's person: how many records are left, and whether his own is among them."""

    left: Array
    own: Array


class LookUps(NamedTuple):
    """By equal values; by labels that cover them, None where these are not of several depths; and how many released records
    are equal to each."""

    equal: LookUp
    covering: LookUp | None
    alike: Array


def looked_up(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> LookUps:
    """Everybody's known values looked up; where values became new categories, these."""
    known = in_released_categories(original, masked, names)
    origin = np.arange(len(masked)) if masked.origin is None else masked.origin
    fit = fitting(known, explained(known, masked, names), names)
    covering = None
    if fit is not None:
        covering = LookUp(fit.records_of_people()[origin], fit.fits(origin, np.arange(len(masked))))
        known = in_texts(known, masked, names)
    cell = compress([common_codes(known, masked, name) for name in names])[0]
    ours, theirs = cell[: len(known)][origin], cell[len(known) :]
    count = np.bincount(theirs, minlength=int(cell.max(initial=0)) + 1)
    return LookUps(LookUp(count[ours], ours == theirs), covering, count[theirs])


@dataclass(frozen=True)
class ExactMatch(Measure):
    """The share of released records that a snooper finds by looking up what he knows, value for value.

    The snooper knows some variables of a person as they are, and filters the released file on all of them. He succeeds
    when fewer than k records are left and the person's own is among them. It is the plainest attack there is: a file in
    which it works needs no other.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default every released column that somebody beside the respondent knows.
    k : so few records or more are a crowd, at least 2; with 2 he is left with one record, the person's.

    Formula: #{released records i : 1 <= f(x_i) < k and y_i = x_i} / #{released records}, x_i what is known of the person,
    y_i the released values, f(x) the released records with values x. Where values became new categories, he looks these
    up. Labels of several depths ("37", "(35, 40]", "*") he reads, and is found too who is among fewer than k records whose
    labels cover his values. `parts`: "alone", the share of released records that no other record equals on these variables,
    found or not.
    Missing is a category of its own: a blanked value equals missing alone (linkage attacks take it for any value).
    Weights and households are not used. Releasing nothing leaves nobody: 0.
    Reference: the uniques of Bethlehem, Keller, Pannekoek (1990), looked up in what was released.

    Examples
    --------
    >>> ExactMatch(on=["age", "sex"], k=3).text
    "ExactMatch(on=['age', 'sex'], k=3)"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0
    revision: ClassVar[int] = 2  # 2: labels of several depths are read

    on: tuple[str, ...] = ()
    k: Annotated[int, Range(2)] = 2

    @property
    def told(self) -> str:
        return "found by looking values up" if self.k == 2 else f"among fewer than {self.k} alike"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.knowable

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        found, count = self._look_up(original, masked)
        if len(masked) == 0:
            return Estimate(value=0.0, parts={"alone": 0.0})
        return Estimate(value=float(found.mean()), parts={"alone": float((count == 1).mean())})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where the record is found, 0 where it is not."""
        return self._look_up(original, masked)[0].astype(np.float64)

    def _look_up(self, original: Microdata, masked: Microdata) -> tuple[Array, Array]:
        """Whether each released record is found, and how many released records equal it."""
        by = looked_up(original, masked, self.checked(original))
        found = by.equal.own & (by.equal.left < self.k)
        if by.covering is not None:
            found |= by.covering.own & (by.covering.left < self.k)
        return found, by.alike
