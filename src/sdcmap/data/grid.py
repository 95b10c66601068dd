"""The grid that the numbers of a column lie on, kept by what a step of a chain makes of some of them."""

from __future__ import annotations

from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.masking.granularity import in_step_with


def on_one_grid(before: Microdata, after: Microdata) -> Microdata:
    """What a step made, its new numbers on the grid of the others in their column."""
    if before.origin is not after.origin or not after.paired:
        return after
    new: dict[str, Array] = {}
    for name in after.changes:
        made, left = after.column(name), before.column(name)
        if made.levels is None and left.levels is None and made.values is not left.values and name != after.weight:
            moved = in_step_with(made.values, left.values)
            new |= {} if moved is made.values else {name: moved}
    return after.change(None, new) if new else after
