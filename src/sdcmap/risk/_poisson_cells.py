"""How many records of a sample must share a combination, so that enough persons of the population share it too."""

from __future__ import annotations

import numpy as np


def records_needed(k: int, fraction: float, level: float, *, truncated: bool) -> int:
    """The least k' <= k such that a combination of k persons seldom (level) shows k' records or more: the k-anonymity of
    the sample that stands for k-map in its population.

    Records of a combination: X ~ Poisson(k fraction). D4, truncated: the least c with P(X >= c | X > 0) <= level; D3: one
    more than the least c > 0 with P(X >= c) <= level.  El Emam and Dankar (2008), as ARX reads them
    """
    from scipy.special import pdtrc

    mean = k * fraction
    count = np.arange(1, k + 1)
    tail = pdtrc(count - 1, mean) / (-np.expm1(-mean) if truncated else 1.0)
    rare = np.flatnonzero(tail <= level)
    least = int(count[rare[0]]) if len(rare) else k
    return min(k, least if truncated else least + 1)
