"""Tables before and after masking: errors of cells, distances, and changes of entropy and association."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, Undefined
from sdcmap.data.tables import Table, subsets_up_to, tables, two_way_tables
from sdcmap.kernels.jit import jit
from sdcmap.kernels.statistics.association import cramers_v, mean_square_contingency
from sdcmap.utility._numeric import WeightedMeasure, check_weights


@dataclass(frozen=True)
class TableMeasure(WeightedMeasure):
    """A utility loss from tables before and after masking: 0 if they are equal.

    A loss over several tables is their mean, or the largest; both are in `parts`.

    Parameters
    ----------
    on : the variables that define the tables; by default the keys of the file.
    weighted : compare weighted counts; needs a weight. Swapping preserves only unweighted margins.
    """

    paired: ClassVar[bool] = False

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys


def summarize_tables(compared: Iterable[Table], loss: Callable[[Table], float], summary: str) -> Estimate:
    """Return the mean or the worst of the losses of several tables, with both in `parts`; for one table, its loss."""
    return summarize([0.0 if table.after is table.before else loss(table) for table in compared], summary)


def summarize(losses: Sequence[float], summary: str) -> Estimate:
    """Return the mean or the worst of several losses, with both in `parts`."""
    mean, worst = math.fsum(losses) / len(losses), max(losses)
    parts = {"mean": mean, "worst": worst} if len(losses) > 1 else {}
    return Estimate(value=worst if summary == "worst" else mean, parts=parts)


# Distances between two tables of counts; entropy and association of one table.


@jit
def hellinger(before: Array, after: Array) -> float:
    """Return H = sqrt(1/2 sum (sqrt f - sqrt g)^2), f and g the relative frequencies. GKS (2003), section 2.2"""
    first, second = before.sum(), after.sum()
    by_first, by_second = 1 / np.sqrt(first), 1 / np.sqrt(second)
    total = 0.0
    for i in range(len(before)):
        if before[i] != after[i] or first != second:
            total += (np.sqrt(before[i]) * by_first - np.sqrt(after[i]) * by_second) ** 2
    return float(np.sqrt(min(0.5 * total, 1.0)))  # rounding may exceed 1 for tables without a common cell


@jit
def total_variation(before: Array, after: Array) -> float:
    """Return TV = 1/2 sum |f - g|, f and g the relative frequencies."""
    first, second = before.sum(), after.sum()
    total = 0.0
    for i in range(len(before)):
        total += abs(before[i] / first - after[i] / second)
    return 0.5 * total


@jit
def entropy(count: Array) -> float:
    """Return the Shannon entropy -sum p log p of the relative frequencies, in nats."""
    total = count.sum()
    nats = 0.0
    for i in range(len(count)):
        if count[i] > 0:
            nats -= count[i] / total * np.log(count[i] / total)
    return nats


def contingency_coefficient(table: Array) -> float:
    """Return Pearson's C = sqrt(chi^2 / (chi^2 + n)) of a two-way table: 0 if independent, always below 1."""
    phi2 = mean_square_contingency(table)
    return float(np.sqrt(phi2 / (1 + phi2)))


# Relative error of the cells of all small tables.


@dataclass(frozen=True)
class TableError(TableMeasure):
    """Relative error of a cell that a user looks up in a table of up to three variables.

    Parameters
    ----------
    weighted : weighted counts; needs a weight. Without it, counts are scaled to the original number of records, as a
        user of a sample or of synthetic data would do.
    order : all tables of 1 to so many variables, at least 1.
    least : cells with fewer records (when `weighted`: a smaller weighted count) in the original are ignored; above 0.
    summary : the value is the "mean" or the "worst" over the tables; both are in `parts`.

    Formula: for a table, the mean of |g - f|/f over its cells with f > 0 in the original; then over the tables.
        `parts`: "emptied", the share of these cells without a released record, and "new", the share of released records
        in cells that the original does not have; both are means over the tables.
    Missing is a category of its own: a suppressed value leaves its cell. A recoded category empties the old cells
    (error 1) and fills new ones. Weights: used when `weighted`. Households are not used. Works for synthetic files.
    Reference: Hundepool et al. (2012), section 3.5.2; Shlomo, Tudor, Groom (2010).

    Examples
    --------
    >>> TableError(on=["sex", "age"], order=2).text
    "TableError(on=['sex', 'age'], order=2)"
    """

    label: ClassVar[str] = "Mean error of table cells"
    description: ClassVar[str] = "Average relative error of a cell in tables of up to three variables."

    unit: ClassVar[str] = "relative error of a cell"
    baseline_value: ClassVar[float | None] = 1.0

    order: Annotated[int, Range(1)] = 3
    least: Annotated[float, Range(0, None, "(]")] = 1.0
    summary: Literal["mean", "worst"] = "mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        if self.weighted:
            check_weights(masked)
        compared = tables(
            original, masked, subsets_up_to(self.check_variables(original), self.order), weighted=self.weighted
        )
        scale = 1.0 if self.weighted else len(original) / len(masked)
        results = [each for table in compared if (each := _errors(table, scale, self.least)) is not None]
        if not results:
            raise Undefined("no cell of the original has enough records: choose a smaller `least`.")
        errors, emptied, new = (np.array(part) for part in zip(*results, strict=True))
        parts = {"mean": errors.mean(), "worst": errors.max(), "emptied": emptied.mean(), "new": new.mean()}
        return Estimate(value=float(parts[self.summary]), parts={name: float(part) for name, part in parts.items()})


def _errors(table: Table, scale: float, least: float) -> tuple[float, float, float] | None:
    """Return the mean error of a table, the share of emptied cells and of records in new cells; None without cells."""
    large = table.before >= least
    if not large.any():
        return None
    errors = np.abs(table.after * scale - table.before)[large] / table.before[large]
    new = table.after[table.before == 0].sum() / table.after.sum()
    return float(errors.mean()), float((table.after[large] == 0).mean()), float(new)


# Distances between the tables before and after masking.


@dataclass(frozen=True)
class _TablesUpTo(TableMeasure):
    """A loss of the table of all variables, or of all tables of some of them.

    Parameters
    ----------
    order : None compares the table of all variables; k compares every table of 1 to k of them, at least 1.
    summary : with an order: the value is the "mean" or the "worst" over the tables; both are in `parts`.
    """

    order: Annotated[int | None, Range(1)] = None
    summary: Literal["mean", "worst"] = "mean"

    def loss(self, table: Table) -> float:
        """Return the loss of one table that masking changed. Subclasses implement it."""
        raise TypeError(f"{type(self).__name__} has no loss.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        compared = tables(
            original, masked, subsets_up_to(self.check_variables(original), self.order), weighted=self.weighted
        )
        return summarize_tables(compared, self.loss, self.summary)


@dataclass(frozen=True)
class _TableDistance(_TablesUpTo):
    """A distance between two tables: 0 the same, 1 no cell in common."""

    unit: ClassVar[str] = "distance, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 1.0


@dataclass(frozen=True)
class Hellinger(_TableDistance):
    """Distance between the tables of the released and the original file: 0 equal, 1 no cell in common.

    Formula: H = sqrt(1/2 sum (sqrt f - sqrt g)^2), f and g the relative frequencies of the cells before and after.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not
    used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2.

    Examples
    --------
    >>> Hellinger(on=["sex", "age"]).text
    "Hellinger(on=['sex', 'age'])"
    """

    label: ClassVar[str] = "Hellinger distance of tables"
    description: ClassVar[str] = (
        "Distance between the tables of the released and the original file; 0 means equal, 1 means nothing in common."
    )

    def loss(self, table: Table) -> float:
        return hellinger(table.before, table.after)


@dataclass(frozen=True)
class TotalVariation(_TableDistance):
    """Share of records that would have to change cells to restore the original table: 0 equal, 1 no cell in common.

    Formula: TV = 1/2 sum |f - g|, f and g the relative frequencies of the cells before and after; the largest
        difference in the share of any set of cells.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not
    used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2, and their report TR131.

    Examples
    --------
    >>> TotalVariation(on=["sex", "age"]).text
    "TotalVariation(on=['sex', 'age'])"
    """

    label: ClassVar[str] = "Total variation of tables"
    description: ClassVar[str] = (
        "Share of records that would have to move to another cell to restore the original table."
    )

    def loss(self, table: Table) -> float:
        return total_variation(table.before, table.after)


# Changes of entropy, conditional entropy, and the association of pairs of variables.


@dataclass(frozen=True)
class EntropyChange(_TablesUpTo):
    """Change in the entropy of the table: swapping spreads records over more cells.

    Formula: |E(g) - E(f)| with E(f) = -sum f log f in nats, f and g the relative frequencies of the cells before and
        after. A change of 0 does not imply that the tables are equal.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not
    used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2, and their report TR131.

    Examples
    --------
    >>> EntropyChange(on=["sex", "age"]).text
    "EntropyChange(on=['sex', 'age'])"
    """

    label: ClassVar[str] = "Change of entropy"
    description: ClassVar[str] = "How far masking changed how evenly records are spread over the cells of the table."

    unit: ClassVar[str] = "nats"

    def loss(self, table: Table) -> float:
        return table.change(entropy)


@dataclass(frozen=True)
class ConditionalEntropyChange(TableMeasure):
    """Change in how well the other variables predict one variable: swapping makes prediction harder.

    Parameters
    ----------
    on : the variables, at least 2; by default the keys of the file.
    order : None takes each variable given all others; k takes it given every 1 to k - 1 of the others; at least 2.
    summary : the value is the "mean" or the "worst" over all of these; both are in `parts`.

    Formula: |E(X | Y) after - E(X | Y) before|, E(X | Y) = E(X, Y) - E(Y) in nats, E the Shannon entropy of a table; X
        one variable, Y a set of others.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not
    used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2 (proposed there; not in their report TR131).

    Examples
    --------
    >>> ConditionalEntropyChange(on=["sex", "age"]).text
    "ConditionalEntropyChange(on=['sex', 'age'])"
    """

    label: ClassVar[str] = "Change of conditional entropy"
    description: ClassVar[str] = "How far masking changed how well the other variables predict one variable."

    unit: ClassVar[str] = "nats"
    min_variables: ClassVar[int] = 2

    order: Annotated[int | None, Range(2)] = None
    summary: Literal["mean", "worst"] = "mean"

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        # E(X | Y) = E(X, Y) - E(Y), so the entropy of every table and of its margins without one variable is needed
        wholes = subsets_up_to(self.check_variables(original), self.order, least=2)
        given = {whole: [(*whole[:j], *whole[j + 1 :]) for j in range(len(whole))] for whole in wholes}
        needed = list(dict.fromkeys([*wholes, *itertools.chain.from_iterable(given.values())]))
        change = {
            names: 0.0 if table.after is table.before else entropy(table.after) - entropy(table.before)
            for names, table in zip(needed, tables(original, masked, needed, weighted=self.weighted), strict=True)
        }
        return summarize([abs(change[w] - change[rest]) for w, rests in given.items() for rest in rests], self.summary)


@dataclass(frozen=True)
class _AssociationChange(TableMeasure):
    """The change of a coefficient of association, over all pairs of variables.

    Parameters
    ----------
    summary : the value is the "mean" or the "worst" (largest) change over all pairs of variables; both are in `parts`.
    """

    unit: ClassVar[str] = "change of a coefficient, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    min_variables: ClassVar[int] = 2

    summary: Literal["mean", "worst"] = "mean"

    def coefficient(self, table: Array) -> float:
        """Return the coefficient of a two-way table. Subclasses implement it."""
        raise TypeError(f"{type(self).__name__} has no coefficient.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        pairs = two_way_tables(original, masked, self.check_variables(original), weighted=self.weighted)
        return summarize_tables(pairs, lambda pair: pair.matrix_change(self.coefficient), self.summary)


@dataclass(frozen=True)
class ContingencyChange(_AssociationChange):
    """Change in the association of pairs of variables, by Pearson's contingency coefficient.

    Parameters
    ----------
    on : the variables, at least 2; by default the keys of the file.

    Formula: mean or largest |C(g) - C(f)| over pairs of variables, C = sqrt(chi^2 / (chi^2 + n)) of their two-way
        table, f before and g after masking. C is 0 if they are independent, and always below 1.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not
    used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2, and their report TR131.

    Examples
    --------
    >>> ContingencyChange(on=["sex", "age"]).text
    "ContingencyChange(on=['sex', 'age'])"
    """

    label: ClassVar[str] = "Change of contingency coefficients"
    description: ClassVar[str] = (
        "Average change in the association of pairs of variables (Pearson's contingency coefficient)."
    )

    def coefficient(self, table: Array) -> float:
        return contingency_coefficient(table)


@dataclass(frozen=True)
class CramersVChange(_AssociationChange):
    """Change in the association of pairs of variables, by Cramér's V.

    Parameters
    ----------
    on : the variables, at least 2; by default the keys of the file.

    Formula: mean or largest |V(g) - V(f)| over pairs of variables, V = sqrt(chi^2 / (n (k - 1))) of their two-way
        table, k the smaller number of categories that occur; f before and g after masking. 0: independent; 1: one
        variable determines the other. V is 0 for a constant variable.
    Missing is a category of its own. Weights: used when `weighted`, else every record counts once. Households are not
    used.
    Reference: Gomatam, Karr, Sanil (2003), section 2.2, and their report TR131.

    Examples
    --------
    >>> CramersVChange(on=["sex", "age"]).text
    "CramersVChange(on=['sex', 'age'])"
    """

    label: ClassVar[str] = "Change of Cramér's V"
    description: ClassVar[str] = "Average change in the association of pairs of variables (Cramér's V)."

    def coefficient(self, table: Array) -> float:
        return cramers_v(table)
