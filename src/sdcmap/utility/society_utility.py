"""How sure society is after a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sdcmap.utility._estimand import Belief
from sdcmap.utility.society_knowledge import SocietyKnowledge


@dataclass(frozen=True)
class SocietyUtility(SocietyKnowledge):
    """Minus society's own uncertainty about a number: Trottini's data utility for society, DUS, at most 0.

    Society estimates as for `SocietyKnowledge`. What counts here is how sure it is, whether its guess is right or not: 0 is
    to be certain, -1 to be as unsure as before.

    Parameters
    ----------
    on : the variable; of a coefficient, the term of the formula, such as "age" or "sex=2".
    of : "mean", "total", "proportion" or "coefficient".
    formula : of a coefficient, such as "wage ~ age + sex"; the response is numeric.
    category : of a proportion, the category that is counted.
    above : of a proportion of a numeric variable: values above it (variable's unit) are counted.
    user : "naive" takes the release for an original file; "informed" has read the method note and takes noise off
        (`sm.correct`) where the note tells how, else does as the naive one.
    weighted : use survey weights; needs a weight.
    prior_records : how much society knew before: as much as so many records tell, at least 1e-6.
    divergence : "loss" or "kl"; it plays no part here, and stands for the four measures to be written alike.
    scale : "prior" divides by society's uncertainty before the release; "raw" does not.
    method : how the file was made; a sweep and a release fill it in.

    Formula: DUS = -v_S/U(prior), v_S and U(prior) as in `SocietyKnowledge`.
    Missing: left out; of a coefficient, records that lack a variable of the formula. Weights: used when `weighted`.
    Households are not used: persons are drawn one by one. Releasing nothing leaves the prior: -1.
    Reference: Trottini (2001), def. 6; Rubin (1981); Lancaster (2003).

    Examples
    --------
    >>> SocietyUtility(on="wage", user="informed").text
    "SocietyUtility(on='wage', user='informed')"
    """

    expectation: ClassVar[bool] = False

    def _uncertainty(self, agency: Belief, society: Belief) -> float:
        return society.variance
