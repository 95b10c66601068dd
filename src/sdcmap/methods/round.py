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
from sdcmap.core.method import Origin
from sdcmap.data.amounts import amounts, replace_amounts
from sdcmap.kernels.masking.breaks import round_at_random, round_to_multiple
from sdcmap.methods.chain import combine_steps

MULTIPLE_TOLERANCE = 1e-6  # as a share of the base; a value this close to a multiple counts as the multiple


def round_number_below(size: float) -> float:
    """Return the largest of 1, 2, 5, 10, 20, ... (and 0.5, 0.2, 0.1, ...) that is at most `size`."""
    power = 10.0 ** math.floor(math.log10(size))
    return power * next(step for step in (5, 2, 1) if step * power <= size)


@dataclass(frozen=True)
class Round(Method):
    """Round numbers to multiples of a base, to the nearest or at random without bias.

    Parameters
    ----------
    on : variables to mask: numeric, or ordinal with numbers as categories.
    base : values are rounded to multiples of it, in the variable's unit; above 0.
    unbiased : round up with probability (x - multiple below)/base, so that the expected released value is x.

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
    value_origin: ClassVar[Origin] = "derived"
    kept: ClassVar[str] = "values to within half a base; if `unbiased`, to within one base, and means in expectation"
    distorted: ClassVar[str] = "differences smaller than the base"
    is_value_map: ClassVar[bool] = True

    on: tuple[str, ...]
    base: Positive
    unbiased: bool = False

    @property
    def action(self) -> str:
        return f"rounded {'at random ' if self.unbiased else ''}to {format_number(self.base)}"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """Round each variable to 1, 2 or 5 times a power of ten, near a share of its standard deviation."""
        names = tuple(name for name in roles.numbers if roles.spread(name) > 0)
        return {
            f"{cls.__name__} {format_strength(s)} sd": cls._near(s, names, roles)
            for s in ((0.25, 1.0) if names else ())
        }

    @classmethod
    def _near(cls, share: float, names: tuple[str, ...], roles: Roles) -> Method:
        """Return steps that round each variable to a round base near this share of its standard deviation."""
        return combine_steps(
            [cls((name,), round_number_below(share * roles.spread(name)), unbiased=True) for name in names]
        )

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Round each variable to a round base near 0.1 to 4 times its standard deviation."""
        if not roles.are_numbers(names) or not all(roles.spread(name) > 0 for name in names):
            return None
        return cls._near(Strengths("base", 0.1, 4.0).at(strength)["base"], names, roles)

    @property
    def random(self) -> bool:  # type: ignore[override]
        """Return whether replicates differ: only unbiased rounding draws random numbers."""
        return self.unbiased

    def preimage(self, name: str, low: Array, high: Array, released: Microdata) -> tuple[Array, Array]:
        """Return the interval from half a base below the first multiple to half a base above the last."""
        if self.unbiased:
            return super().preimage(name, low, high, released)
        first, last = np.ceil(low / self.base - MULTIPLE_TOLERANCE), np.floor(high / self.base + MULTIPLE_TOLERANCE)
        return self.base * (first - 0.5), self.base * (last + 0.5)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return replace_amounts(data, {name: self._round(amounts(data, name), rng) for name in self.on})

    def _round(self, x: Array, rng: Generator) -> Array:
        return round_at_random(x, self.base, rng.random(len(x))) if self.unbiased else round_to_multiple(x, self.base)
