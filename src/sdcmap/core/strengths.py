"""The natural range of a method's strength: what a search tries, from weak to strong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DIGITS = 3  # of a strength that is tried: nobody states more


@dataclass(frozen=True)
class Strengths:
    """The values that one parameter takes from the weakest masking worth a trial to the strongest.

    parameter : name of the field. weak, strong : its values at strengths 0 and 1; whole numbers where both are. log : steps
    between are equal factors, else equal differences. fixed : other fields, the same at every strength.

    >>> Strengths("p", 0.01, 0.9).at(0.5), Strengths("size", 3, 100).at(0.5)
    ({'p': 0.0949}, {'size': 17})
    """

    parameter: str
    weak: float
    strong: float
    log: bool = True
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def at(self, strength: float) -> dict[str, Any]:
        """The fields of a method at a strength in [0, 1]."""
        if self.log:
            value = self.weak * (self.strong / self.weak) ** strength
        else:
            value = self.weak + (self.strong - self.weak) * strength
        whole = isinstance(self.weak, int) and isinstance(self.strong, int)
        return {**self.fixed, self.parameter: round(value) if whole else float(f"{value:.{DIGITS}g}")}
