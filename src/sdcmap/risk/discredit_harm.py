"""How sure an intruder is of his targets, rightly or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.risk._beliefs import Beliefs
from sdcmap.risk.intruder_knowledge import IntruderKnowledge


@dataclass(frozen=True)
class DiscreditHarm(IntruderKnowledge):
    """Minus the intruder's own uncertainty about his targets: Trottini's risk of discredit harm, RDH, at most 0.

    The intruder links and guesses as for `IntruderKnowledge`. What counts here is how sure he is: one who believes that he
    knows says so, and discredits the agency even where he is wrong. 0: he is certain. -1: as unsure as before.

    Parameters
    ----------
    targets : whom he wants: "maximum", "minimum" or a share p, the record whose value has rank ceil(n p); a list of these;
        by default every record.
    over : "mean" over the targets, or "worst": the one that he is surest of.
    divergence : "loss" or "kl"; it plays no part here, and stands for the four measures to be written alike.
    scale : "prior" divides by the variance of his prior; "raw" does not.
    measured : it plays no part here.

    Formula: RDH = -U(posterior)/U(prior), with quadratic loss the variance of the mixture of what his links say and of the
    prior, as in `IntruderKnowledge`; noise: l2/(s2 + l2).
    Missing: a target whose value is missing is none; a missing released value leaves the prior. Weights and households
    are not used: every target counts once. `parts`: "linked", the mean weight of the links. Large files: a draw of the
    records, as in `IntruderKnowledge`.
    Releasing nothing leaves the prior: -1, over the harm weight.
    Reference: Trottini (2001), def. 1; Duncan, Lambert (1986).

    Examples
    --------
    >>> DiscreditHarm(on="wage", over="worst").text
    "DiscreditHarm(on='wage', over='worst')"
    """

    expectation: ClassVar[bool] = False

    def _uncertainty(self, original: Microdata, beliefs: Beliefs) -> Array:
        return np.where(np.isfinite(original.numbers(self.on)), beliefs.variance, np.nan)
