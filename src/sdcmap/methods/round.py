"""Rounding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.core import (
    Array,
    Generator,
    Method,
    Microdata,
    Positive,
    Roles,
    Strengths,
    Trials,
    format_number,
    format_strength,
)
from sdcmap.data.amounts import amounts, replace_amounts
from sdcmap.kernels.masking.breaks import randomly_rounded, rounded
from sdcmap.methods.chain import in_turn

NEAR = 1e-6  # of a base: so near to a multiple is on it


def handy(size: float) -> float:
    """The largest of 1, 2, 5, 10, 20, ... (and .5, .2, .1, ...) that is at most `size`."""
    power = 10.0 ** math.floor(math.log10(size))
    return power * next(step for step in (5, 2, 1) if step * power <= size)


@dataclass(frozen=True)
class Round(Method):
    """Round numbers to multiples of a base, to the nearest or at random without bias.

    Parameters
    ----------
    on : variables to mask: numeric, or ordinal with numbers as categories.
    base : values become multiples of it, in the variable's unit; above 0.
    unbiased : round up with probability (x - multiple below)/base, so that the mean of a value is the value.

    Formula: base floor(x/base + 1/2), halves up; unbiased: base (floor(x/base) + B), B ~ Bernoulli(x/base - floor(x/base)).
    Missing values stay missing. Weights and households are not used.
    Reference: Hundepool et al. (2012), section 3.2.4; Nargundkar and Saveland (1972) for random rounding.

    Examples
    --------
    >>> Round(on="income", base=1000).text
    "Round(on='income', base=1000.0)"
    """

    label: ClassVar[str] = "Rounding"
    description: ClassVar[str] = "Numbers are rounded to multiples of a base."

    kinds: ClassVar[tuple[str, ...]] = ("numeric", "ordinal")
    kept: ClassVar[str] = "values to half a base; when unbiased to one base, and means in expectation"
    distorted: ClassVar[str] = "digits below the base"
    is_value_map: ClassVar[bool] = True

    on: tuple[str, ...]
    base: Positive
    unbiased: bool = False

    @property
    def action(self) -> str:
        return f"rounded {'at random ' if self.unbiased else ''}to {format_number(self.base)}"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """To 1, 2 or 5 times a power of ten, near a share of the standard deviation of each variable."""
        names = tuple(name for name in roles.numbers if roles.spread(name) > 0)
        return {
            f"{cls.__name__} {format_strength(s)} sd": cls._near(s, names, roles)
            for s in ((0.25, 1.0) if names else ())
        }

    @classmethod
    def _near(cls, share: float, names: tuple[str, ...], roles: Roles) -> Method:
        """Each to a handy base near this share of its standard deviation."""
        return in_turn([cls((name,), handy(share * roles.spread(name)), unbiased=True) for name in names])

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Each to a handy base near .1 to 4 times its standard deviation."""
        if not roles.are_numbers(names) or not all(roles.spread(name) > 0 for name in names):
            return None
        return cls._near(Strengths("base", 0.1, 4.0).at(strength)["base"], names, roles)

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Only unbiased rounding draws random numbers."""
        return self.unbiased

    def preimage(self, name: str, low: Array, high: Array, released: Microdata) -> tuple[Array, Array]:
        """From half a base below the first multiple to half a base above the last."""
        if self.unbiased:
            return super().preimage(name, low, high, released)
        first, last = np.ceil(low / self.base - NEAR), np.floor(high / self.base + NEAR)
        return self.base * (first - 0.5), self.base * (last + 0.5)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return replace_amounts(data, {name: self._rounded(amounts(data, name), rng) for name in self.on})

    def _rounded(self, x: Array, rng: Generator) -> Array:
        return randomly_rounded(x, self.base, rng.random(len(x))) if self.unbiased else rounded(x, self.base)
