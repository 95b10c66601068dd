"""A part of the rows of a file, the same for every candidate of a study: what candidates are screened on."""

from __future__ import annotations

import numpy as np

from sdcmap.core import Microdata, Stream
from sdcmap.core.refits import assign_folds

SCREENING_SHARE = 0.25  # of the people


def screening_sample(data: Microdata, key: bytes) -> Microdata:
    """Return a quarter of the people, drawn by this key, as a file of its own.

    Households whole, strata evenly. It is drawn once and kept with the file.
    """
    return data.remember(("part", key), lambda: _draw_sample(data, key))


def _draw_sample(data: Microdata, key: bytes) -> Microdata:
    fold = assign_folds(data, SCREENING_SHARE, data.schema.of_role("stratum"), Stream(key).rng())
    part = data.take(np.flatnonzero(fold == 0))
    return Microdata(part.schema, part.columns)
