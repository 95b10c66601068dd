"""Swapping of the records that linkage still finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.spatial import KDTree

from sdcmap.core.method import Method, Trials
from sdcmap.core.roles import Roles
from sdcmap.core.streams import Stream
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import NEVER_RELEASED
from sdcmap.errors import Infeasible, SchemaError
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.noise_covariance import spreads
from sdcmap.methods.chain import Chain
from sdcmap.methods.noise import Noise

TIE = 1 + 1e-9  # distances that differ by less than this factor are equal


def own_is_nearest(original: Array, masked: Array) -> Array:
    """True where no original record is nearer to masked record i than original record i.

    Each file's columns are divided by their own standard deviation; a missing value stands at the column's mean; a
    constant or empty column is left out.
    """
    known, released = (_standardised(x) for x in (original, masked))
    live = ~(np.isnan(known).any(axis=0) | np.isnan(released).any(axis=0))
    if not live.any():
        return np.zeros(len(masked), dtype=bool)
    known, released = known[:, live], released[:, live]
    nearest, _ = KDTree(known).query(released)
    own = np.sqrt(((released - known) ** 2).sum(axis=1))
    is_own: Array = own <= nearest * TIE
    return is_own


def _standardised(x: Array) -> Array:
    """Each column divided by its standard deviation; NaN in all of a column that has none."""
    standardised = np.full_like(x, np.nan)
    enough = (~np.isnan(x)).sum(axis=0) >= 2
    spread = np.zeros(x.shape[1])
    spread[enough] = spreads(x[:, enough])
    for j in np.flatnonzero(np.isfinite(spread) & (spread > 0)):
        standardised[:, j] = np.where(np.isnan(x[:, j]), np.nanmean(x[:, j]), x[:, j]) / spread[j]
    return standardised


def random_exchange(rows: Array, group: Array, rng: Generator) -> tuple[Array, Array]:
    """The rows in random pairs within their group, and the partner of each; one is left over where a group is odd."""
    shuffled = rng.permutation(rows)
    shuffled = shuffled[np.argsort(group[shuffled], kind="stable")]
    places = group[shuffled]
    start = np.searchsorted(places, places)  # where the group of each begins
    first = np.flatnonzero((np.arange(len(places)) - start) % 2 == 0)
    first = first[first + 1 < len(places)]
    first = first[places[first] == places[first + 1]]
    first_half, second_half = shuffled[first], shuffled[first + 1]
    return np.concatenate([first_half, second_half]), np.concatenate([second_half, first_half])


@dataclass(frozen=True)
class SwapReidentified(Method):
    """Exchange the values of records that linkage still finds, as the last step of a Chain after noise.

    A masked record is still found when no original record is nearer to it than its own. These records, in random pairs,
    exchange the variables `on` as one block, while all other variables stay: who finds the block finds it beside
    another person's other variables.

    Parameters
    ----------
    on : the numeric variables that are compared and exchanged as one block: as a rule those that the step before masked.
        Another variable must be left: whole records that change places protect nobody.
    within : subdomains: a partner is drawn among the found records of the same subdomain, so that sums and means of
        subdomains are kept. The linkage looks at the whole file, as a snooper would.

    Formula: nearest by Euclidean distance, each file's variables divided by their own standard deviations; a tie counts
    as found. A found record without a free partner in its subdomain stays as it is.
    Needs the original file, which a Chain has: on its own it is infeasible.
    A missing value moves with its block; for the distance it stands at the mean. Weights are not used: each record keeps
    its own. Households are not used: persons are swapped one by one.
    Reference: Yancey, Winkler, Creecy (2002), file add01_sw; Kim and Winkler (1995).

    Examples
    --------
    >>> SwapReidentified(on=["income", "tax"], within="region").text
    "SwapReidentified(within='region', on=['income', 'tax'])"
    >>> from sdcmap.methods import Chain, Noise
    >>> chain = Chain([Noise(on=["income", "tax"]), SwapReidentified(on=["income", "tax"])])
    """

    mixes: ClassVar[bool] = True
    looks_back: ClassVar[bool] = True
    missing: ClassVar[str] = "category"
    weights: ClassVar[str] = "not used to draw pairs; each record keeps its own weight"
    kept: ClassVar[str] = "the joint distribution of the exchanged variables, in the file and in each subdomain"
    distorted: ClassVar[str] = "relations between exchanged and other variables, in the records that linkage found"

    on: tuple[str, ...]

    @property
    def deed(self) -> str:
        return "of found records swapped"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """After noise, as the method needs: the records still found are swapped."""
        swapped = roles.numbers[: len(roles.numbers) // 2]
        if not swapped:
            return {}
        return {f"{cls.__name__} after Noise .05": Chain((Noise(roles.numbers, 0.05, correlated=True), cls(swapped)))}

    def problems(self) -> Iterator[str]:
        if not self.on:
            yield ".on must name at least one variable."

    def apply(self, data: Microdata, stream: Stream) -> Microdata:
        problems = list(self.misfits(data))
        if problems:
            raise SchemaError(" ".join(problems))
        return self.mask(data, stream.rng())

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if data.base is None or data.origin is not None:
            raise Infeasible(
                "there is no original to link with: SwapReidentified is a later step of a Chain, after noise."
            )
        if {v.name for v in data.schema.variables if v.role not in NEVER_RELEASED} <= set(self.on):
            raise Infeasible("every variable would be exchanged: whole records change places, and nobody is protected.")
        reidentified = np.flatnonzero(own_is_nearest(data.base.matrix(self.on), data.matrix(self.on)))
        group = data.view(cells, self.within).code if self.within else np.zeros(len(data), dtype=np.int64)
        rows, partners = random_exchange(reidentified, group, rng)
        return data.change(rows, {name: data.numbers(name)[partners] for name in self.on})
