"""A snooper who knows which record his target's is, for one target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.risk.position import Position


@dataclass(frozen=True)
class Index(Position):
    """How precisely a snooper who has found his target's record learns its value: R = 1/MSE for that target.

    The snooper knows which record of the released file belongs to the person with the largest, the smallest or the p-th
    percentile value, and takes the masked value there for the true one.

    Parameters
    ----------
    target : "maximum", "minimum", or a share p in (0, 1): the record whose value has rank ceil(n p).

    Formula: R = 1/E(Y_t - x_t)^2 over replicates (eq. 12, t the target's record). `parts`: "squared_error".
    Ties at the target: the expected value over the tied records, that is the mean of their squared errors.
    Missing: a target that masking made missing tells the snooper nothing, and the measure is undefined. Weights and
    households are not used.
    Releasing nothing leaves the snooper the mean of the file: R = 1/(xbar - x_t)^2.
    Reference: Duncan, Keller-McNulty, Stokes (2001), section 4, index knowledge.

    Examples
    --------
    >>> Index(on="income", target="minimum").text
    "Index(on='income', target='minimum')"
    """

    paired: ClassVar[bool] = True
    missing: ClassVar[str] = "left out in the original; undefined where masking made the target missing"

    def squared_error(self, original: Microdata, masked: Microdata) -> float:
        """(Y_t - x_t)^2 of one masked file, in the mean over the records tied at the target."""
        value = self.value(original)
        rows = original.remember(("at", self.on, value), lambda: np.flatnonzero(original.numbers(self.on) == value))
        if masked.origin is not None:
            rows = np.flatnonzero(np.isin(masked.origin, rows))
        values = masked.numbers(self.on)
        released = (
            [float(values[rows[0]])] if len(rows) == 1 else values[rows].tolist()
        )  # one record is the common case
        squared_errors = [(y - value) ** 2 for y in released if y == y]  # NaN left out
        if not squared_errors:
            raise Undefined(f"the target's value of {self.on!r} is not in the masked file.")
        return sum(squared_errors) / len(squared_errors)
