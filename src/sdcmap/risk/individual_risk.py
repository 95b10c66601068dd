"""The chance that a link to one record is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Share
from sdcmap.data.microdata import Microdata
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

    summary: Literal["mean", "largest", "share above"] = "mean"
    threshold: Share = 0.1

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        self.checked(original)
        met, risk = self.risks(masked)
        expected, n = float(met.count @ risk), len(masked)
        parts = {
            "mean": expected / n,
            "largest": float(risk.max()),
            "expected": expected,
            "above": int(met.count[risk > self.threshold].sum()) / n,
        }
        return Estimate(parts["above" if self.summary == "share above" else self.summary], None, parts)
