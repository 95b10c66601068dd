"""How many persons of the population are alone with their keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.value import Range
from sdcmap.data.cells import distinct_cells
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.risk._frequencies import positive_weights
from sdcmap.risk._population_uniques import pitman, snb, zayatz

MODELS: dict[str, Callable[[Array, Array, float], float]] = {"zayatz": zayatz, "pitman": pitman, "snb": snb}
SMALL = 0.1  # sampling fraction up to which Dankar's rule takes Pitman's model


@dataclass(frozen=True)
class PopulationUniqueness(Measure):
    """The share of the population whose combination of keys nobody else has, estimated from the sample.

    The snooper has a register of the population and looks in the release for persons who are alone in it with their keys:
    whoever links such a person links rightly. He succeeds with every one of them who is in the file. Which records these
    are nobody can tell from a sample, but how many there are can be estimated from the sizes of the groups of equal
    records. What masking changed counts as if it were true.

    Parameters
    ----------
    model : "zayatz", "pitman", "snb" (slide negative binomial), or "dankar": Pitman for sampling fractions up to .1, above
        the smaller of Zayatz and SNB, and Zayatz where the others cannot be fitted.
    fraction : the sampling fraction, in (0, 1]; by default records over the sum of the weights, and 1 without weights.
    on : the variables he knows, of any kind; by default the keys of the file.

    Formula: expected number of persons who are alone, over N = n/fraction. Zayatz: u_1 P(1 in the population | 1 in the
        sample)/fraction, sizes of groups as in the sample; Pitman: N (theta + alpha)_(N-1)/(theta + 1)_(N-1) at the
        maximum of the likelihood; SNB: K beta^alpha, K by Shlosser's estimate, alpha and beta by the groups of one and
        of two.
    `parts`: every model that can be fitted, and the share of records that are "alone" in the sample.
    Missing is a category of its own. Weights give the fraction where none is stated; they must be positive. Households are
    not used. Undefined where the model cannot be fitted.
    Reference: Zayatz (1991); Hoshino (2001); Chen and Keller-McNulty (1998); Dankar, El Emam, Neisa, Roffey (2012).

    Examples
    --------
    >>> PopulationUniqueness("pitman", fraction=0.01).text
    "PopulationUniqueness(model='pitman', fraction=0.01)"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of persons"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0
    weights: ClassVar[str] = "used where no fraction is stated: their sum is the size of the population"

    model: Literal["dankar", "zayatz", "pitman", "snb"] = "dankar"
    fraction: Annotated[float | None, Range(0, 1, "(]")] = None
    on: tuple[str, ...] = ()

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if self.fraction is None:
            yield from positive_weights(self, data)

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.checked(original)
        if len(masked) == 0:
            raise Undefined("the file has no records.")
        sizes, counts = np.unique(masked.view(distinct_cells, names).count, return_counts=True)
        share = self.fraction or min(1.0, len(masked) / float(masked.weights.sum()))
        alone = float(counts[sizes == 1].sum() / len(masked))
        wanted = [name for name in MODELS if self.model in (name, "dankar")]
        fitted = _fitted(wanted, sizes, counts, len(masked) / share) if alone else dict.fromkeys(wanted, 0.0)
        value = _by_rule(fitted, share) if self.model == "dankar" else fitted.get(self.model)
        if value is None:
            raise Undefined(f"the model {self.model!r} cannot be fitted to the sizes of the groups of this file.")
        return Estimate(value, None, fitted | {"alone": alone})


def _fitted(models: Sequence[str], sizes: Array, counts: Array, population: float) -> dict[str, float]:
    """The share of each model that can be fitted."""
    shares = {name: MODELS[name](sizes, counts, population) / population for name in models}
    return {name: min(share, 1.0) for name, share in shares.items() if not math.isnan(share)}


def _by_rule(fitted: dict[str, float], fraction: float) -> float:
    """Dankar et al. (2012), the decision rule."""
    if fraction <= SMALL:
        return fitted.get("pitman", fitted["zayatz"])
    return min(fitted["zayatz"], fitted.get("snb", 1.0))
