"""Protection of the largest and smallest values of amounts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from sdcmap.core import Array, Generator, Method, Microdata, Range, Roles, Trials
from sdcmap.core.method import Origin
from sdcmap.kernels.masking.tails import MIN_UNITS_BEYOND, Tails, fit_tails, replace_tails

BIAS_NOT_STATED = (
    "their mean is not kept, and how far it is off is not stated: it would tell whether the largest unit is in the file"
)


@dataclass(frozen=True)
class FitTails:
    """Fit the tails beyond k units of a numeric variable. A view; the names are the variable and the unit columns."""

    k: int

    def __call__(self, data: Microdata, names: tuple[str, ...]) -> Tails | None:
        return fit_tails(data.numbers(names[0]), units_of(data), self.k)


def units_of(data: Microdata) -> Array | None:
    """Return the unit of each record: its person, where people have several records, else its household.

    None if each record is a unit.
    """
    return data.units if data.unit_columns else None


def tails_of(data: Microdata, name: str, k: int) -> Tails | None:
    """Return the tails of a numeric variable, computed once per file. None if all its values are missing."""
    return data.view(FitTails(k), (name, *data.unit_columns))


@dataclass(frozen=True)
class ProtectTails(Method):
    """Replace the largest and smallest values of amounts by draws from a model of the tail.

    The largest released number would otherwise tell the largest amount in the file, and whether its owner is in it. Use it
    as a step before methods that keep or exchange numbers, such as rank swapping, microaggregation or noise.

    Parameters
    ----------
    on : numeric variables to mask, each independently.
    k : the cut is the value of the k-th largest (smallest) unit, k at least 10; values beyond it are replaced. A unit is a
        person with all records, where the file has several of a person, else a household; it counts by its largest
        (smallest) value. Without either a unit is a record.

    Formula: beyond the cut u, y = u + e, e ~ generalized Pareto: F(e) = 1 - (1 + shape e/scale)^(-1/shape). It is fitted to
    the excesses of up to 10 k units over a lower threshold, by maximum likelihood with a beta prior that shrinks the shape
    to 0; with few units it is exponential. The eight largest are censored: the fit uses that they are larger than the
    ninth, not by how much. The order of the values does not change.
    Where k units or more have the extreme value, nothing changes. Fewer than five units beyond the cut get its value. The
    column's rounding is kept, and its sign: fewer than k zeros or negative values at one end are replaced. The mean of the
    replaced values is not kept: a mean that contains the largest value would show it. Nor is its bias stated: rounded to
    one digit, and with a p % rule passed, it still told whether the largest unit was in (AUC 0.75 to 0.99 on made files).
    Missing values stay missing. Weights are not used. Equal values of one unit get equal values.

    Likelihood: a reader of the method note repeats the step with random numbers of their own. Only steps after it add to
    the likelihood.
    Reference: Pickands (1975); Epstein, Sobel (1953); Martins, Stedinger (2001).

    Examples
    --------
    >>> ProtectTails(on="wage").title
    'wage extremes redrawn beyond 10 units'
    """

    label: ClassVar[str] = "Protected extremes"
    description: ClassVar[str] = (
        "The largest and smallest values of each amount are replaced by draws from a model of the tail."
    )

    revision: ClassVar[int] = 2  # 2: a person with several records counts once
    mixes_records: ClassVar[bool] = True
    is_simulated: ClassVar[bool] = True
    value_origin: ClassVar[Origin] = "unmasked"
    households: ClassVar[str] = "a household counts once at each end, and members with equal values keep equal values"
    kept: ClassVar[str] = "every value up to the cut at each end, the order of the values, their rounding and sign"
    distorted: ClassVar[str] = (
        "the largest and smallest values of each amount, of at least ten units at each end: they are draws from a "
        f"generalized Pareto tail above the cut, or an exponential one; {BIAS_NOT_STATED}"
    )

    on: tuple[str, ...]
    k: Annotated[int, Range(MIN_UNITS_BEYOND)] = MIN_UNITS_BEYOND

    @property
    def action(self) -> str:
        return f"extremes redrawn beyond {self.k} units"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        return {cls.__name__: "it changes only extremes; use it before methods that keep or exchange numbers."}

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Return None: alone, it changes too few values."""
        return None

    def by_column(self) -> tuple[Method, ...]:
        """Return one step for each variable: an attacker may know only some of them."""
        return (self,) if self.within or len(self.on) < 2 else tuple(replace(self, on=(name,)) for name in self.on)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        units = units_of(data)
        return data.change(None, {name: self._replace(data, name, units, rng) for name in self.on})

    def _replace(self, data: Microdata, name: str, units: Array | None, rng: Generator) -> Array:
        x, tails = data.numbers(name), tails_of(data, name, self.k)
        if tails is None:
            return x
        if units is None:
            return replace_tails(x, tails, rng)
        # Draw one value for all records of a unit that have the same value.
        rows = np.flatnonzero(~tails.inside(x) & ~np.isnan(x))
        pairs, index = np.unique(np.column_stack([units[rows], x[rows]]), axis=0, return_inverse=True)
        replaced = x.copy()
        replaced[rows] = replace_tails(pairs[:, 1], tails, rng)[index.ravel()]
        return replaced
