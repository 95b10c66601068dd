"""What measures of tables share: the variables, the weights, and the loss over several tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sdcmap.core.measure import Estimate, Measure
from sdcmap.data.microdata import Microdata
from sdcmap.data.tables import Table
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.jit import jit


@dataclass(frozen=True)
class TableMeasure(Measure):
    """A loss of utility that is read off tables before and after masking: 0 when they are the same.

    Fields: `on`, the variables (by default the keys of the file), and `weighted`, for sums of survey weights in place of
    counts. A loss over several tables is their mean, or the largest; both are in `parts`.

    Parameters
    ----------
    on : the variables that make the tables; by default the keys of the file.
    weighted : compare weighted counts; needs a weight. Swapping keeps unweighted margins only.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    weights: ClassVar[str] = "used when `weighted`, else every record counts once"
    paired: ClassVar[bool] = False
    fewest: ClassVar[int] = 1  # variables it needs

    on: tuple[str, ...] = ()
    weighted: bool = False

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if self.weighted and data.weight is None:
            yield f"{type(self).__name__}.weighted needs a file with a weight."
        if 0 < len(set(self.variables(data))) < self.fewest:
            yield f"{type(self).__name__} needs at least {self.fewest} variables."


def loss_over(compared: Iterable[Table], loss: Callable[[Table], float], summary: str) -> Estimate:
    """The mean or the worst of the losses of several tables, with both in `parts`; of one table, its loss."""
    return summary_of([0.0 if table.after is table.before else loss(table) for table in compared], summary)


def summary_of(losses: Sequence[float], summary: str) -> Estimate:
    """The same of losses already at hand."""
    mean, worst = math.fsum(losses) / len(losses), max(losses)
    parts = {"mean": mean, "worst": worst} if len(losses) > 1 else {}
    return Estimate(worst if summary == "worst" else mean, None, parts)


# Distances between two tables of counts, and what one table tells: entropy and association.


@jit
def hellinger(before: Array, after: Array) -> float:
    """H = sqrt(1/2 sum (sqrt f - sqrt g)^2), f and g the relative frequencies.  GKS (2003), section 2.2"""
    first, second = before.sum(), after.sum()
    by_first, by_second = 1 / np.sqrt(first), 1 / np.sqrt(second)
    total = 0.0
    for i in range(len(before)):
        if before[i] != after[i] or first != second:
            total += (np.sqrt(before[i]) * by_first - np.sqrt(after[i]) * by_second) ** 2
    return float(np.sqrt(min(0.5 * total, 1.0)))  # of tables that share no cell rounding makes more of it


@jit
def total_variation(before: Array, after: Array) -> float:
    """TV = 1/2 sum |f - g|, f and g the relative frequencies."""
    first, second = before.sum(), after.sum()
    total = 0.0
    for i in range(len(before)):
        total += abs(before[i] / first - after[i] / second)
    return 0.5 * total


@jit
def entropy(count: Array) -> float:
    """Shannon entropy -sum p log p of the relative frequencies, in nats."""
    total = count.sum()
    nats = 0.0
    for i in range(len(count)):
        if count[i] > 0:
            nats -= count[i] / total * np.log(count[i] / total)
    return nats


def mean_square_contingency(table: Array) -> float:
    """phi^2 = chi^2 / n of a two-way table: sum f_ij^2 / (f_i. f_.j) - 1."""
    share = table / table.sum()
    expected = share.sum(axis=1, keepdims=True) * share.sum(axis=0, keepdims=True)
    met = expected > 0
    return max(0.0, float((share[met] ** 2 / expected[met]).sum() - 1))


def contingency_coefficient(table: Array) -> float:
    """Pearson's C = sqrt(chi^2 / (chi^2 + n)) of a two-way table: 0 independent, below 1 always."""
    phi2 = mean_square_contingency(table)
    return float(np.sqrt(phi2 / (1 + phi2)))


def cramers_v(table: Array) -> float:
    """V = sqrt(phi^2 / (min(rows, columns) - 1)), rows and columns that occur; 0 where one variable is constant."""
    least = min(int((table.sum(axis=axis) > 0).sum()) for axis in (0, 1)) - 1
    return float(np.sqrt(mean_square_contingency(table) / least)) if least > 0 else 0.0
