"""Averaging of survey weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from sdcmap.core import Fields, Floats, Generator, Infeasible, Method, Microdata, Range, Roles, Trials, format_number
from sdcmap.core.method import Origin


def average_neighbors(weights: Floats, size: int) -> Floats:
    """Replace each weight by the mean of its group: `size` or a few more records with neighboring weights.

    Equal weights stay equal.
    """
    distinct, index, count = np.unique(weights, return_inverse=True, return_counts=True)
    upto = np.cumsum(count)
    # Equal weights never go to different groups, so groups are built from distinct weights and may exceed `size`.
    starts = [0]  # the first distinct weight of each group
    while (end := int(np.searchsorted(upto, upto[starts[-1]] - count[starts[-1]] + size)) + 1) < len(distinct):
        starts.append(end)
    # A last group that is too small joins the one before it.
    if len(starts) > 1 and len(weights) - upto[starts[-1] - 1] < size:
        starts.pop()
    means = np.add.reduceat(distinct * count, starts) / np.add.reduceat(count, starts)
    return np.asarray(np.repeat(means, np.diff(starts, append=len(distinct)))[index])


@dataclass(frozen=True)
class AverageWeights(Method):
    """Replace survey weights by means of similar weights, so that no weight is unique.

    Most calibrated weights occur only once in a file. An attacker who knows or can compute a weight has then identified
    the record, and a weight that occurs in one cell alone reveals the cell. Only the weight column is changed.

    Parameters
    ----------
    size : the minimum number of records that share a weight, at least 3.

    Formula: the weights are sorted and divided into groups of `size` records, or more where weights are equal; each
    weight becomes the mean of its group. The total of the weights is preserved, in each stratum of `within`.
    Missing weights are refused. Households are not used; members with equal weights still have equal weights.
    The method has no likelihood: attacks assume that weights are not known.
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
    weights: ClassVar[str] = "replaced by the means of groups of similar weights; their total does not change"
    masks_weight: ClassVar[bool] = True
    random: ClassVar[bool] = False
    value_origin: ClassVar[Origin] = "derived"
    kept: ClassVar[str] = "the total of the weights; their order, except within a group"
    distorted: ClassVar[str] = "differences between weights of the same group"

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
        return {
            cls.__name__: "it changes only the weights; use it in a chain with methods that mask the other columns."
        }

    def masks(self, data: Microdata) -> tuple[str, ...]:
        return () if data.weight is None else (data.weight,)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from super().incompatibilities(data)
        if data.weight is None:
            yield "AverageWeights needs a file with a weight column."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if data.weight is None or len(data) < self.size:
            raise Infeasible(f"AverageWeights needs at least {self.size} records to average over.")
        return data.change(None, {data.weight: average_neighbors(data.numbers(data.weight), self.size)})

    def pair_fields(self, known: Microdata, released: Microdata) -> Fields:
        return ()
