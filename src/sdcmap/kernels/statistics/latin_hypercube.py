"""Points spread evenly over a unit cube."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from sdcmap.kernels.arrays import Array


def latin_hypercube(count: int, dimensions: int, rng: Generator) -> Array:
    """So many points, a row each: in every dimension each of `count` equal intervals holds one of them.

    McKay, Beckman, Conover (1979), section 2
    """
    strata = np.argsort(rng.random((count, dimensions)), axis=0)
    points: Array = (strata + rng.random((count, dimensions))) / count
    return points
