"""The chance that a link to one record is right, its sum over the file, and the same for households."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from sdcmap.core import Array, Estimate, Generator, Microdata, Share
from sdcmap.kernels.tables.frequency_risks import household_risks
from sdcmap.risk._frequencies import LinkMeasure


@dataclass(frozen=True)
class IndividualRisk(LinkMeasure):
    """The mean chance that linking a record by its keys to a person of the population is right.

    The snooper has a register of the whole population with names and the keys, and links each released record to one of
    the persons who have its combination, at random. He succeeds when it is the right one. He does not know who is in the
    sample; the weights say how many persons of the population have a combination. What masking changed counts as if it
    were true.

    Parameters
    ----------
    summary : "mean" over the records (the global risk), "largest", or the "share above" the threshold.
    threshold : for "share above": a risk in [0, 1].

    Formula: r = E(1/F | f) with F | f negative binomial and p = f / sum of weights:
        exact p/f 2F1(1, 1; f+1; 1-p); approximate, f = 1: p/(1-p) ln(1/p); f = 2: p/(1-p) - (p/(1-p))^2 ln(1/p);
        f > 2: p / (f - (1-p)); ratio p/f, one over the persons that the weights say match. Without weights, or where
        f = F: 1/f.
    `parts`: "mean", "largest", "expected" re-identifications (their sum) and the share "above".
    Missing values as `missing_is` says. Weights must be positive; without any the file is the population. Households are
    not used: see HouseholdRisk.
    Reference: Benedetti and Franconi (1998); Franconi and Polettini (2004); Templ, Kowarik, Meindl (2015).

    Examples
    --------
    >>> IndividualRisk(form="exact").text
    "IndividualRisk(form='exact')"
    """

    label: ClassVar[str] = "Mean re-identification probability"
    description: ClassVar[str] = (
        "Average probability that linking a record to a person in the population by its keys is correct."
    )

    summary: Literal["mean", "largest", "share above"] = "mean"
    threshold: Share = 0.1

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        met, risk = self.cell_risks(original, masked)
        expected, n = float(met.count @ risk), len(masked)
        parts = {
            "mean": expected / n,
            "largest": float(risk.max()),
            "expected": expected,
            "above": int(met.count[risk > self.threshold].sum()) / n,
        }
        return Estimate(value=parts["above" if self.summary == "share above" else self.summary], parts=parts)


# How many records a snooper links rightly.


@dataclass(frozen=True)
class ExpectedReidentifications(LinkMeasure):
    """The number of records that a snooper links rightly, on average.

    The snooper links every released record to one of the persons of a population register who have its keys, at random,
    as for IndividualRisk. He succeeds with each link that is right; counted are those of the whole file.

    Formula: sum of the individual risks over the records; `parts`: "share", the same per record.
    It grows with the file: files of different size are compared by IndividualRisk.
    Missing values as `missing_is` says. Weights must be positive; without any the file is the population. Households are
    not used.
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
        met, risk = self.cell_risks(original, masked)
        expected = float(met.count @ risk)
        return Estimate(value=expected, parts={"share": expected / len(masked)})


# The chance that a link to one member of a household is right.


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

    label: ClassVar[str] = "Mean household re-identification risk"
    description: ClassVar[str] = (
        "Average probability that at least one member of a person's household is linked correctly."
    )

    households: ClassVar[str] = "used: the file needs a variable of this role"

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().other_incompatibilities(data)
        if data.household is None:
            yield "HouseholdRisk needs a file with a household variable: state its role."

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        expected = float(self.records(original, masked).sum())
        return Estimate(value=expected / len(masked), parts={"expected": expected})

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
