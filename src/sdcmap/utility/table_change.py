"""Changes of what a table tells: entropy, conditional entropy, and the association of pairs of variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from numpy.random import Generator

from sdcmap.core.measure import Estimate
from sdcmap.core.value import Range
from sdcmap.data.microdata import Microdata
from sdcmap.data.tables import tables, two_way_tables, up_to
from sdcmap.kernels.arrays import Array
from sdcmap.utility._tables import TableMeasure, contingency_coefficient, cramers_v, entropy, loss_over, summary_of


@dataclass(frozen=True)
class EntropyChange(TableMeasure):
    """By how much masking changed the disorder of the table: swapping spreads records over more cells.

    Parameters
    ----------
    order : None compares the table of all variables; k compares every table of 1 to k of them, at least 1.
    summary : with an order: the value is the "mean" or the "worst" over the tables; both are in the parts.

    Formula: |E(g) - E(f)| with E(f) = -sum f log f in nats, f and g the relative frequencies of the cells before and after.
    A change of 0 does not say that the tables are the same.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2, and their report TR131.

    Examples
    --------
    >>> EntropyChange(on=["sex", "age"]).text
    "EntropyChange(on=['sex', 'age'])"
    """

    unit: ClassVar[str] = "nats"

    order: Annotated[int | None, Range(1)] = None
    summary: Literal["mean", "worst"] = "mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        compared = tables(original, masked, up_to(self.checked(original), self.order), weighted=self.weighted)
        return loss_over(compared, lambda table: table.change(entropy), self.summary)


@dataclass(frozen=True)
class ConditionalEntropyChange(TableMeasure):
    """By how much masking changed what the other variables tell about one: swapping makes it harder to predict.

    Parameters
    ----------
    on : the variables, at least 2; by default the keys of the file.
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


@dataclass(frozen=True)
class _AssociationChange(TableMeasure):
    """The change of a coefficient of association, over all pairs of variables.

    Parameters
    ----------
    summary : the value is the "mean" or the "worst" (largest) change over all pairs of variables; both are in the
        parts.
    """

    unit: ClassVar[str] = "change of a coefficient, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    fewest: ClassVar[int] = 2

    summary: Literal["mean", "worst"] = "mean"

    def coefficient(self, table: Array) -> float:
        """Of a two-way table."""
        raise TypeError(f"{type(self).__name__} has no coefficient.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        pairs = two_way_tables(original, masked, self.checked(original), weighted=self.weighted)
        return loss_over(pairs, lambda pair: pair.matrix_change(self.coefficient), self.summary)


@dataclass(frozen=True)
class ContingencyChange(_AssociationChange):
    """By how much masking changed the association of two variables, over all pairs, in Pearson's contingency coefficient.

    Parameters
    ----------
    on : the variables, at least 2; by default the keys of the file.

    Formula: mean or largest |C(g) - C(f)| over pairs of variables, C = sqrt(chi^2 / (chi^2 + n)) of their two-way table, f
    before and g after masking. C is 0 where they are independent, and always below 1.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2, and their report TR131.

    Examples
    --------
    >>> ContingencyChange(on=["sex", "age"]).text
    "ContingencyChange(on=['sex', 'age'])"
    """

    def coefficient(self, table: Array) -> float:
        return contingency_coefficient(table)


@dataclass(frozen=True)
class CramersVChange(_AssociationChange):
    """By how much masking changed the association of two variables, over all pairs, in Cramér's V.

    Parameters
    ----------
    on : the variables, at least 2; by default the keys of the file.

    Formula: mean or largest |V(g) - V(f)| over pairs of variables, V = sqrt(chi^2 / (n (k - 1))) of their two-way table, k
    the smaller number of categories that occur; f before and g after masking. 0 independent, 1 one tells the other; where
    a variable is constant V is 0.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2, and their report TR131.

    Examples
    --------
    >>> CramersVChange(on=["sex", "age"]).text
    "CramersVChange(on=['sex', 'age'])"
    """

    def coefficient(self, table: Array) -> float:
        return cramers_v(table)
