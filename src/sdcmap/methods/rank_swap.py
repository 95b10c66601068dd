"""Rank swapping."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator

from sdcmap.errors import Infeasible
from sdcmap.kernels.ranks import rank_swap
from sdcmap.method import Method
from sdcmap.microdata import Array, Microdata
from sdcmap.value import Range


@dataclass(frozen=True)
class RankSwap(Method):
    """Exchange each value with one whose rank is less than p n away, variable by variable.

    Parameters
    ----------
    on : numeric variables to mask, each on its own.
    p : width of the window as a share of the records, in (0, 1]. A share, never a percent.

    Formula: strict window, 0 < |rank(i) - rank(l)| < p n; each value is exchanged at most once.
    Missing values stay where they are and are not ranked; n counts the others. Weights and households are not used, so
    weighted margins change. Equal values are ranked in file order.
    Reference: Yancey, Winkler, Creecy (2002), section 3.1.

    Examples
    --------
    >>> RankSwap(on="income", p=0.1).text
    "RankSwap(on='income', p=0.1)"
    """

    kept: ClassVar[str] = "the unweighted distribution of each variable, value for value"
    distorted: ClassVar[str] = "relations between variables; weighted totals"

    on: tuple[str, ...]
    p: Annotated[float, Range(0, 1, "(]")] = 0.05

    def problems(self) -> Iterator[str]:
        if not self.on:
            yield ".on must name at least one variable."

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {name: self._swapped(data.numbers(name), name, rng) for name in self.on})

    def _swapped(self, x: Array, name: str, rng: Generator) -> Array:
        present = np.flatnonzero(~np.isnan(x))
        if self.p * len(present) <= 1:
            raise Infeasible(f"a window of p = {self.p:g} of {len(present)} values of {name!r} holds no other value.")
        swapped = x.copy()
        swapped[present] = rank_swap(x[present], self.p, rng)
        return swapped
