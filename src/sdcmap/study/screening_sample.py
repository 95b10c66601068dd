"""A sample of the rows of a file, the same for every candidate of a study. Candidates are screened on it."""

from __future__ import annotations

import numpy as np

from sdcmap.core import Microdata, Stream
from sdcmap.core.refits import assign_folds

SCREENING_SHARE = 0.25  # of the people, so that a screening costs at most a quarter of a full evaluation


def screening_sample(data: Microdata, key: bytes) -> Microdata:
    """Return a quarter of the people, drawn with this key, as an independent file.

    Households stay together, and strata are sampled evenly. The sample is drawn once and cached with the file.
    """
    return data.remember(("part", key), lambda: _draw_sample(data, key))


def _draw_sample(data: Microdata, key: bytes) -> Microdata:
    fold = assign_folds(data, SCREENING_SHARE, data.schema.of_role("stratum"), Stream(key).rng())
    part = data.take(np.flatnonzero(fold == 0))
    return Microdata(part.schema, part.columns)
