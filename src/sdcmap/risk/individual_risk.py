"""The probability that a link to one record is correct, its sum over the file, and the same for households."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from sdcmap.core import Array, Estimate, Generator, Microdata, Share
from sdcmap.kernels.tables.frequency_risks import household_risks
from sdcmap.risk._frequencies import LinkMeasure


@dataclass(frozen=True)
class IndividualRisk(LinkMeasure):
    """Probability that linking a record by its keys to a person of the population is correct, by default the mean.

    The attacker has a register of the whole population with names and keys, and links each released record at random to
    one of the persons with its combination of keys. They do not know who is in the sample; the weights estimate how
    many persons of the population have each combination. Masked values count as if they were true.

    Parameters
    ----------
    summary : "mean" over the records (the global risk), "largest", or the "share above" the threshold.
    threshold : for "share above": a risk in [0, 1].

    Formula: r = E(1/F | f) with F | f negative binomial and p = f / sum of weights: exact p/f 2F1(1, 1; f+1; 1-p);
        approximate, f = 1: p/(1-p) ln(1/p); f = 2: p/(1-p) - (p/(1-p))^2 ln(1/p); f > 2: p / (f - (1-p)); ratio p/f,
        one over the estimated number of matching persons. Without weights, or if f = F: 1/f.
    `parts`: "mean", "largest", "expected re-identifications" (the sum) and "share above" the threshold.
    Missing values match according to `missing_is`. Weights must be positive; without weights the file is the
    population. Households are not used: see HouseholdRisk.
    Reference: Benedetti and Franconi (1998); Franconi and Polettini (2004); Templ, Kowarik, Meindl (2015).

    Examples
    --------
    >>> IndividualRisk(form="exact").text
    "IndividualRisk(form='exact')"
    """

    label: ClassVar[str] = "Individual re-identification risk"
    description: ClassVar[str] = (
        "Probability that linking a record to a person in the population by its keys is correct; by default "
        "the average over records."
    )

    summary: Literal["mean", "largest", "share above"] = "mean"
    threshold: Share = 0.1

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        cells, risk = self.cell_risks(original, masked)
        expected, n = float(cells.count @ risk), len(masked)
        parts = {
            "mean": expected / n,
            "largest": float(risk.max()),
            "expected re-identifications": expected,
            "share above": int(cells.count[risk > self.threshold].sum()) / n,
        }
        return Estimate(value=parts[self.summary], parts=parts)


# How many records an attacker links correctly.


@dataclass(frozen=True)
class ExpectedReidentifications(LinkMeasure):
    """Expected number of records that an attacker links correctly.

    The attacker links every released record at random to one of the persons of a population register with its keys, as
    in IndividualRisk. The measure counts the correct links of the whole file.

    Formula: sum of the individual risks over the records; `parts`: "share", the same per record. The value grows with
        the file; use IndividualRisk to compare files of different size.
    Missing values match according to `missing_is`. Weights must be positive; without weights the file is the
    population. Households are not used.
    Reference: Templ, Kowarik, Meindl (2015); SDC Practice Guide, global risk.

    Examples
    --------
    >>> ExpectedReidentifications().text
    'ExpectedReidentifications'
    """

    label: ClassVar[str] = "Expected number of re-identifications"
    description: ClassVar[str] = (
        "Expected number of records that an attacker with a population register links correctly."
    )

    unit: ClassVar[str] = "records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, None)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        cells, risk = self.cell_risks(original, masked)
        expected = float(cells.count @ risk)
        return Estimate(value=expected, parts={"share": expected / len(masked)})


# The probability that a link to one member of a household is correct.


@dataclass(frozen=True)
class HouseholdRisk(LinkMeasure):
    """Mean probability, over persons, that at least one member of the household is linked correctly.

    The attacker links each person of the released file to a population register, as in IndividualRisk. The file shows
    who lives together, so one correct link re-identifies the whole household.

    Parameters
    ----------
    on : the variables the attacker knows of each person; by default the keys of the file.

    Formula: mean over persons of 1 - prod (1 - r_j) over the members j of the person's household, assuming independent
        links; r is the individual risk. `parts`: "expected re-identifications", the sum over persons.
    Missing values match according to `missing_is`. Weights must be positive; without weights the file is the
    population. Households: the file needs a variable with this role; a person with a missing household is a one-person
    household.
    Reference: Franconi and Polettini (2004); SDC Practice Guide, household risk.

    Examples
    --------
    >>> HouseholdRisk(on=["Age", "Sex"]).text
    "HouseholdRisk(on=['Age', 'Sex'])"
    """

    label: ClassVar[str] = "Mean household re-identification risk"
    description: ClassVar[str] = (
        "Average probability that at least one member of a person's household is linked correctly."
    )

    households: ClassVar[str] = "used: the file needs a variable with this role"

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().other_incompatibilities(data)
        if data.household is None:
            yield "HouseholdRisk needs a household variable: give a column the role household."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        expected = float(self.records(original, masked).sum())
        return Estimate(value=expected / len(masked), parts={"expected re-identifications": expected})

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """Return the risk of each person's household."""
        risk = super().records(original, masked)
        return household_risks(risk, masked.view(household_numbers, str(original.household)))


def household_numbers(data: Microdata, name: str) -> Array:
    """Return the household of each person as 0, 1, ...; a person with a missing household gets a number of their own."""
    number = data.codes(name).astype("int64")
    missing = data.missing(name)
    number[missing] = data.level_count(name) + missing.nonzero()[0]
    return number
