"""The chance that a link to one member of a household is right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.frequency_risks import household_risks
from sdcmap.risk._frequencies import LinkMeasure


@dataclass(frozen=True)
class HouseholdRisk(LinkMeasure):
    """The mean chance, over persons, that at least one member of the household is linked rightly.

    The snooper links each person of the released file to a register of the population, as for IndividualRisk. The file
    says who lives together, so he succeeds for a whole household as soon as one of its members is linked rightly.

    Parameters
    ----------
    on : the variables he knows of each person; by default the keys of the file.

    Formula: mean over persons of 1 - prod (1 - r_j) over the members j of the person's household, links of members being
    independent; r is the individual risk. `parts`: "expected", the sum over persons.
    Missing values as `missing_is` says. Weights must be positive; without any the file is the population. Households: the
    file needs a variable of this role; persons whose household is missing are one-person households.
    Reference: Franconi and Polettini (2004); SDC Practice Guide, household risk.

    Examples
    --------
    >>> HouseholdRisk(on=["Age", "Sex"]).text
    "HouseholdRisk(on=['Age', 'Sex'])"
    """

    households: ClassVar[str] = "used: the file needs a variable of this role"

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if data.household is None:
            yield "HouseholdRisk needs a file with a household variable: state its role."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        expected = float(self.records(original, masked).sum())
        return Estimate(expected / len(masked), None, {"expected": expected})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """The risk of each person's household."""
        risk = super().records(original, masked)
        return household_risks(risk, masked.view(household_numbers, str(original.household)))


def household_numbers(data: Microdata, name: str) -> Array:
    """The household of each person as 0, 1, ..., as a view; a person whose household is missing has one of his own."""
    number = data.codes(name).astype("int64")
    alone = data.missing(name)
    number[alone] = data.level_count(name) + alone.nonzero()[0]
    return number
