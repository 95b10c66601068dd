"""Records left in small cells: the n-rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.value import Range
from sdcmap.data.cells import cells, moves
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import in_small_cells


@dataclass(frozen=True)
class SmallCells(Measure):
    """The share of unchanged records that sit in a small cell of the released table.

    The snooper knows the key variables of somebody and looks the combination up in the released file. He succeeds when
    fewer than n records share it and the record he finds is one the masking left alone.

    Parameters
    ----------
    n : a cell with fewer than n records is small; at least 2.
    on : the variables that make the table; by default the keys of the file.
    counting : "unchanged" counts, above and below the fraction line, the records that masking left as they were on
        these variables (nothing else marks a swap, so a file made elsewhere can be scored); "all" counts every record.

    Formula: #{unchanged records in cells with 1..n-1 records after masking} / #{unchanged records}.
    Missing is a category of its own. Weights are not used: cells are counted in the file. Households are not used.
    Where every record has changed the value is undefined, never 0.
    Reference: Gomatam, Karr, Sanil (2003), section 2.1.

    Examples
    --------
    >>> SmallCells(n=5).text
    'SmallCells(n=5)'
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0

    n: Annotated[int, Range(2)] = 3
    on: tuple[str, ...] = ()
    counting: Literal["unchanged", "all"] = "unchanged"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        moved = moves(original, masked, self.checked(original))
        exposed, exposed_moved = in_small_cells(moved.after, moved.new, self.n)
        counted = len(masked)
        if self.counting == "unchanged":
            exposed -= exposed_moved
            counted -= len(moved.rows)
        if counted == 0:
            raise Undefined("every record has changed on the measured variables, so none is left to count.")
        return Estimate(exposed / counted)

    def records(self, original: Microdata, masked: Microdata) -> Array:
        """1 where the record counts as exposed, 0 elsewhere; a changed record is NaN when only unchanged ones count."""
        names = self.checked(original)
        table = masked.view(cells, names)
        exposed = (table.count[table.code] < self.n).astype(float)
        if self.counting == "unchanged":
            exposed[moves(original, masked, names).rows] = np.nan
        return exposed
