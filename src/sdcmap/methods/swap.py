"""Categorical data swapping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator

from sdcmap.cells import cells
from sdcmap.errors import Infeasible
from sdcmap.kernels.pairs import matching_pairs
from sdcmap.method import Method
from sdcmap.microdata import Array, Microdata
from sdcmap.value import Range


def stacked_codes(data: Microdata, names: tuple[str, ...]) -> Array:
    """The codes of `names` side by side, one row a record: what a pair must differ in."""
    codes = [data.codes(name) for name in names]
    return np.column_stack(codes) if codes else np.empty((len(data), 0), dtype=np.uint8)


@dataclass(frozen=True)
class Swap(Method):
    """Exchange the values of some variables between random pairs of records that differ in all of them.

    Parameters
    ----------
    on : categorical variables to swap, all at once.
    rate : number of pairs as a share of the records, in (0, 0.5]: round(rate n) pairs, twice as many records.
    same : variables, not swapped, in which the two records must agree.
    differ : variables, not swapped, in which they must differ.

    Formula: one random perfect matching of the records; its first round(rate n) admissible pairs exchange the values.
    Every swapped record changes in every swapped variable ("true swap"). A request that the matching cannot fill is
    infeasible, with the counts; it is never partly done. With an odd number of records one stays out.
    Missing is a category like any other, in all of these variables. Weights are not used: unweighted margins, the joint
    distribution of the swapped and that of the unswapped variables are kept exactly, weighted ones are not. Households
    are not used: persons are swapped one by one.
    Reference: Gomatam, Karr, Sanil (2003), section 3.

    Examples
    --------
    >>> Swap(on=["Age", "Sex"], rate=0.05).text
    "Swap(on=['Age', 'Sex'], rate=0.05)"
    """

    kinds: ClassVar[tuple[str, ...]] = ("ordinal", "nominal")
    missing: ClassVar[str] = "category"
    kept: ClassVar[str] = "unweighted counts of each variable, of the swapped and of the unswapped variables together"
    distorted: ClassVar[str] = "relations between swapped and unswapped variables; weighted counts"

    on: tuple[str, ...]
    rate: Annotated[float, Range(0, 0.5, "(]")] = 0.01
    same: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        if not self.on:
            yield ".on must name at least one variable."
        for constraint in ("same", "differ"):
            both = sorted(set(self.on) & set(getattr(self, constraint)))
            if both:
                yield f".{constraint} must not name a swapped variable: {', '.join(both)}."

    def _columns(self) -> tuple[str, ...]:
        return (*super()._columns(), *self.same, *self.differ)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        wanted = int(np.floor(self.rate * len(data) + 0.5))
        if wanted == 0:
            raise Infeasible(f"a rate of {self.rate:g} of {len(data)} records is no pair at all.")
        for name in self.on:
            if data.level_count(name) < 2:
                raise Infeasible(f"{name!r} has one category, so no two records differ in it.")
        must_differ = data.view(stacked_codes, (*self.on, *self.differ))
        must_agree = data.view(cells, self.same).code if self.same else np.empty(0, dtype=np.int32)
        first, second = matching_pairs(wanted, must_differ, must_agree, rng)
        if len(first) < wanted:
            raise Infeasible(f"the matching has {len(first)} admissible pairs of the {wanted} that the rate asks for.")
        rows = np.concatenate([first, second])
        partners = np.concatenate([second, first])
        return data.change(rows, {name: data.codes(name)[partners] for name in self.on})
