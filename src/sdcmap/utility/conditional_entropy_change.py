"""Change of the entropy of one variable given others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.microdata import Microdata
from sdcmap.data.tables import tables, up_to
from sdcmap.kernels.tables.contingency import entropy
from sdcmap.utility._tables import TableMeasure, summary_of


@dataclass(frozen=True)
class ConditionalEntropyChange(TableMeasure):
    """By how much masking changed what the other variables tell about one: swapping makes it harder to predict.

    Parameters
    ----------
    on : the variables, at least 2; by default the keys of the file.
    weighted : compare weighted tables; needs a weight.
    order : None takes each variable given all others; k takes it given every 1 to k - 1 of the others; at least 2.
    summary : the value is the "mean" or the "worst" over all of these; both are in the parts.

    Formula: |E(X | Y) after - E(X | Y) before|, E(X | Y) = E(X, Y) - E(Y) in nats, E the Shannon entropy of a table; X one
    variable, Y a set of others.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2 (proposed there; not in their report TR131).

    Examples
    --------
    >>> ConditionalEntropyChange(on=["sex", "age"]).text
    "ConditionalEntropyChange(on=['sex', 'age'])"
    """

    unit: ClassVar[str] = "nats"
    fewest: ClassVar[int] = 2

    order: Annotated[int | None, Range(2)] = None
    summary: Literal["mean", "worst"] = "mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        wholes = up_to(names, self.order, least=2)
        given = {whole: [(*whole[:j], *whole[j + 1 :]) for j in range(len(whole))] for whole in wholes}
        needed = list(dict.fromkeys([*wholes, *(rest for rests in given.values() for rest in rests)]))
        compared = tables(original, masked, needed, weighted=self.weighted)
        change = {
            names: 0.0 if table.after is table.before else entropy(table.after) - entropy(table.before)
            for names, table in zip(needed, compared, strict=True)
        }
        return summary_of([abs(change[w] - change[rest]) for w, rests in given.items() for rest in rests], self.summary)
