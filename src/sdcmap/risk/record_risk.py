"""The risk of the record that is easiest to look up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.value import Range
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array, Floats
from sdcmap.risk.exact_match import looked_up

FEWEST = 20  # people from whom it is learnt how often a look-up that leaves so many records is right


class Crowds(NamedTuple):
    """By the number of records that a look-up leaves, from few to many: people, and how often theirs is among them."""

    size: Array
    people: Array
    right: Floats


def crowds(left: Array, own: Array) -> Crowds:
    """left : records that the look-up of each person leaves, 0: none; own : whether his is among them. Sizes with few
    people are judged together with the next, the last ones with those before."""
    size, place, people = np.unique(left[left > 0], return_inverse=True, return_counts=True)
    met = np.bincount(place, own[left > 0], len(size))
    starts = [0]
    for end in range(1, len(size)):
        if people[starts[-1] : end].sum() >= FEWEST <= people[end:].sum():
            starts.append(end)
    if not len(size):
        return Crowds(size, people, np.empty(0))
    right = np.add.reduceat(met, starts) / np.add.reduceat(people, starts)
    return Crowds(size, people, right[np.searchsorted(starts, np.arange(len(size)), side="right") - 1])


@dataclass(frozen=True)
class RecordRisk(Measure):
    """The largest probability with which a snooper is right who looks somebody up by what everybody may know.

    The snooper knows the keys of a person, filters the released file on them, and takes one of the records that are left.
    How sure may he be? In a file that nothing perturbed, one over their number: the smallest crowd decides (1/k). Where
    values were changed the right record may not be among them, and he learns how often it is.

    Parameters
    ----------
    on : the variables he knows, of any kind; by default the keys of the file.
    inclusion : the probability that the person is in the file, in (0, 1]; the risk is multiplied by it, and stands
        without it in `parts` as "prosecutor".

    Formula: max over s of P(his record is among the s that are left | s are left)/s; the probability is the share of the
    people of whom s records are left, sizes with fewer than 20 people being taken together with the next.
    `parts`: "smallest crowd", "people" of whom so many records are left, and the number of people "expected" to be found.
    Where values became new categories, he looks these up; of labels of several depths he takes the records that have his
    values, and where there are none those whose labels cover them.
    Missing is a category of its own: a blanked value equals missing alone. Weights and households are not used. Releasing
    nothing leaves nobody: 0.
    Reference: "maximum risk" of El Emam (2013), Guide to the De-identification of Personal Health Information, for files
    that are not perturbed; how often a look-up is right, ours.

    Examples
    --------
    >>> RecordRisk(on=["age", "sex"]).text
    "RecordRisk(on=['age', 'sex'])"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "probability"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0
    revision: ClassVar[int] = 2  # 2: labels of several depths are read

    on: tuple[str, ...] = ()
    inclusion: Annotated[float, Range(0, 1, "(]")] = 1.0

    @property
    def told(self) -> str:
        return "largest record risk"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        met = crowds(*self._look_up(original, masked))
        if not len(met.size):
            return Estimate(value=0.0, parts={"prosecutor": 0.0, "smallest crowd": 0.0, "people": 0.0, "expected": 0.0})
        risk = met.right / met.size
        parts = {
            "prosecutor": float(risk.max()),
            "smallest crowd": float(met.size[0]),
            "people": float(met.people[0]),
            "expected": self.inclusion * float(met.people @ risk),
        }
        return Estimate(value=self.inclusion * parts["prosecutor"], parts=parts)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The probability for each released record's person; 0 where no record is left."""
        left, own = self._look_up(original, masked)
        met = crowds(left, own)
        place = np.searchsorted(met.size, left)
        each = np.append(met.right / met.size, 0.0)[np.where(left > 0, place, len(met.size))]
        return np.asarray(self.inclusion * each)

    def _look_up(self, original: Microdata, masked: Microdata) -> tuple[Array, Array]:
        """For each released record's person: how many records his known values leave, and whether his is among them."""
        equal, covering, _ = looked_up(original, masked, self.checked(original))
        if covering is None:
            return equal.left, equal.own
        some = equal.left > 0
        return np.where(some, equal.left, covering.left), np.where(some, equal.own, covering.own)
