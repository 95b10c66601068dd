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
    divergence : "loss" or "kl"; it plays no part here, and stands for the four measures to be written alike.
    scale : "prior" divides by society's uncertainty before the release; "raw" does not.

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
