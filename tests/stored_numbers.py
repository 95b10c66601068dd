"""Compare stored numbers with numbers computed here.

Processors, BLAS libraries and the order of a sum change the last bits of a result. A stored number is compared with a
relative tolerance, and near zero with an absolute one: 1.1e-16 is 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

RELATIVE = 1e-6
NEAR_ZERO = 1e-9
SHOWN_RELATIVE, SHOWN_NEAR_ZERO = 0.0101, 0.0006  # one unit in the last of three shown digits
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def is_same_number(stored: object, computed: object, relative: float = RELATIVE, near_zero: float = NEAR_ZERO) -> bool:
    """Return whether two values are equal, numbers up to rounding."""
    if isinstance(stored, int | float) and isinstance(computed, int | float):
        return math.isclose(stored, computed, rel_tol=relative, abs_tol=near_zero)
    return stored == computed


def changed_lines(shown: Iterable[str], computed: Iterable[str]) -> list[tuple[str, str]]:
    """Return the lines of a page that differ from the computed ones by more than one unit in the third digit."""
    return [(one, two) for one, two in zip(shown, computed, strict=True) if not _is_same_line(one, two)]


def _is_same_line(shown: str, computed: str) -> bool:
    numbers = zip(NUMBER.findall(shown), NUMBER.findall(computed), strict=False)
    return NUMBER.sub("", shown) == NUMBER.sub("", computed) and all(
        is_same_number(float(one), float(two), SHOWN_RELATIVE, SHOWN_NEAR_ZERO) for one, two in numbers
    )
