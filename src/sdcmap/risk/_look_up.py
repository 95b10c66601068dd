"""People looked up in a release by what is known of them: records that have their values, or whose labels cover them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sdcmap.data.cells import common_codes, in_released_categories
from sdcmap.data.covering import explained, fitting, in_texts
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress


class LookUp(NamedTuple):
    """For each released record's person: how many records are left, and whether his own is among them."""

    left: Array
    own: Array


class LookUps(NamedTuple):
    """By equal values; by labels that cover them, None where these are not of several depths; and how many released records
    are equal to each."""

    equal: LookUp
    covering: LookUp | None
    alike: Array


def looked_up(original: Microdata, masked: Microdata, names: tuple[str, ...]) -> LookUps:
    """Everybody's known values looked up; where values became new categories, these."""
    known = in_released_categories(original, masked, names)
    origin = np.arange(len(masked)) if masked.origin is None else masked.origin
    fit = fitting(known, explained(known, masked, names), names)
    covering = None
    if fit is not None:
        covering = LookUp(fit.records_of_people()[origin], fit.fits(origin, np.arange(len(masked))))
        known = in_texts(known, masked, names)
    cell = compress([common_codes(known, masked, name) for name in names])[0]
    ours, theirs = cell[: len(known)][origin], cell[len(known) :]
    count = np.bincount(theirs, minlength=int(cell.max(initial=0)) + 1)
    return LookUps(LookUp(count[ours], ours == theirs), covering, count[theirs])
