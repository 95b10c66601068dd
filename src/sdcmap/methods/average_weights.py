"""Averaging of survey weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from sdcmap.core import Fields, Floats, Generator, Infeasible, Method, Microdata, Range, Roles, Trials, format_number


def average_neighbors(weights: Floats, size: int) -> Floats:
    """Neighboring weights, in groups of `size` records or a few more, as their group's mean; equal ones stay equal."""
    distinct, place, count = np.unique(weights, return_inverse=True, return_counts=True)
    upto = np.cumsum(count)
    starts = [0]  # the first distinct weight of each group
    while (end := int(np.searchsorted(upto, upto[starts[-1]] - count[starts[-1]] + size)) + 1) < len(distinct):
        starts.append(end)
    if len(starts) > 1 and len(weights) - upto[starts[-1] - 1] < size:
        starts.pop()
    means = np.add.reduceat(distinct * count, starts) / np.add.reduceat(count, starts)
    return np.asarray(np.repeat(means, np.diff(starts, append=len(distinct)))[place])


@dataclass(frozen=True)
class AverageWeights(Method):
    """Replace survey weights by means of neighboring weights, so that a weight is nobody's own.

    A calibrated weight is mostly a number that no other record has: who knows it, or can compute it, has found the record,
    and the weight of a cell tells the cell. The step changes the file's weight and nothing else.

    Parameters
    ----------
    size : fewest records that share a weight, at least 3.

    Formula: weights in rising order, in groups of `size` records or as many more as have the same weight; w becomes the
    mean of its group. Totals of weights are kept, in each stratum of `within`; equal weights stay equal.
    Missing weights are refused. Households are not used: members with one weight keep one. Likelihood: nobody is found by
    his weight, which no snooper is taken to know.
    Reference: de Waal and Willenborg (1997), Statistical disclosure control and sampling weights, Journal of Official
    Statistics 13; the means are a univariate microaggregation of fixed size.

    Examples
    --------
    >>> AverageWeights(size=50).title
    'weights averaged over at least 50 records'
    """

    label: ClassVar[str] = "Averaged survey weights"
    description: ClassVar[str] = (
        "Each survey weight is replaced by the mean of similar weights, so that no weight points to one record."
    )

    kinds: ClassVar[tuple[str, ...]] = ("numeric", "ordinal")
    missing: ClassVar[str] = "refused"
    weights: ClassVar[str] = "replaced by means of groups; their total is kept"
    masks_weight: ClassVar[bool] = True
    random: ClassVar[bool] = False
    kept: ClassVar[str] = "the total of the weights, and their order but within groups"
    distorted: ClassVar[str] = "differences of weights within a group"

    size: Annotated[int, Range(3)] = 25

    @property
    def title(self) -> str:
        strata = f" within {', '.join(self.within)}" if self.within else ""
        return f"weights {self.action}{strata}"

    @property
    def action(self) -> str:
        return f"averaged over at least {format_number(self.size)} records"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        return {cls.__name__: "it changes the weights alone: a chain holds it beside what masks the other columns."}

    def masks(self, data: Microdata) -> tuple[str, ...]:
        return () if data.weight is None else (data.weight,)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if data.weight is None:
            yield "AverageWeights needs a file with a weight."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if data.weight is None or len(data) < self.size:
            raise Infeasible(f"a weight that {self.size} records share needs as many records.")
        return data.change(None, {data.weight: average_neighbors(data.numbers(data.weight), self.size)})

    def pair_fields(self, known: Microdata, released: Microdata) -> Fields:
        return ()
